"""Parses CQL: SQL with windows in brackets after a source, and with ISTREAM, DSTREAM and RSTREAM."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from sqlglot import Dialect, ErrorLevel, exp, parser, tokens
from sqlglot.errors import ParseError, TokenError
from sqlglot.tokenizer_core import Token, TokenType

from dsms.algebra import Window
from dsms.durations import UNITS_US, parse_whole_us
from dsms.errors import PlanError
from dsms.query.cql.errors import CqlError

STREAM_OPERATORS = ("ISTREAM", "DSTREAM", "RSTREAM")
UNIT_NAMES = {
    "us": ("MICROSECOND", "MICROSECONDS"),
    "ms": ("MILLISECOND", "MILLISECONDS"),
    "s": ("SECOND", "SECONDS"),
    "m": ("MINUTE", "MINUTES"),
    "h": ("HOUR", "HOURS"),
    "d": ("DAY", "DAYS"),
}
UNIT_US = {name: UNITS_US[short] for short, names in UNIT_NAMES.items() for name in (short.upper(), *names)}
CLAUSES = (TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING)
NAMES_A_COLUMN = (TokenType.FROM, TokenType.COMMA, TokenType.DOT, TokenType.ALIAS, TokenType.SENTINEL)
Part = TypeVar("Part", bound=exp.Expr)


class StreamClause(exp.Expression):
    """The items of `SELECT ISTREAM a, b`: the changes of a relation."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True, "distinct": False}


def refuse_clause(reader: parser.Parser) -> tuple[str, exp.Expr]:
    """Refuse all clauses but WHERE, GROUP BY and HAVING: results that never end have no order or limit."""
    token = reader._curr
    raise CqlError(f"{token.text.upper()} is not part of CQL: a continuous query has no last row", token.start)


class Cql(Dialect):
    """CQL as in Stanford's STREAM."""

    class Tokenizer(tokens.Tokenizer):
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **tokens.Tokenizer.KEYWORDS,
            "//": TokenType.DIV,
            "INT64": TokenType.BIGINT,
            "FLOAT64": TokenType.DOUBLE,
            "STRING": TokenType.TEXT,
        }

    class Parser(parser.Parser):
        # Without sqlglot's own functions every call keeps its name and arguments: ours are looked up by the binder.
        FUNCTIONS: ClassVar[dict[str, Callable[..., Any]]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {"CAST": parser.Parser.FUNCTION_PARSERS["CAST"]}
        NO_PAREN_FUNCTIONS: ClassVar[dict[TokenType, Any]] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., Any]]] = {
            "CASE": parser.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]
        }
        COLUMN_OPERATORS: ClassVar[dict[TokenType, Any]] = {
            token: parser.Parser.COLUMN_OPERATORS[token] for token in (TokenType.DOT, TokenType.DCOLON)
        }
        QUERY_MODIFIER_PARSERS: ClassVar[dict[TokenType, Callable[..., Any]]] = {
            token: parse if token in CLAUSES else refuse_clause
            for token, parse in parser.Parser.QUERY_MODIFIER_PARSERS.items()
        }

        def expression(self, instance: Part, token: Token | None = None, comments: list[str] | None = None) -> Part:
            """Note the offset of every part, for errors."""
            part = super().expression(instance, token, comments)
            if self._prev:
                part.meta.setdefault("start", self._prev.start)
            return part

        def _parse_statement(self) -> exp.Expr | None:
            """Accept queries only; sqlglot knows many other statements."""
            query = self._parse_query_modifiers(self._parse_set_operations(self._parse_select(nested=True)))
            if query is None:
                raise CqlError(
                    f"a query starts with SELECT or as in ISTREAM (SELECT, not {self._given()}", self._here()
                )
            return query

        def _parse_select_query(
            self,
            nested: bool = False,
            table: bool = False,
            parse_subquery_alias: bool = True,
            parse_set_operation: bool = True,
        ) -> exp.Expr | None:
            start = self._here()
            changes = self._next.token_type == TokenType.L_PAREN and self._match_texts(STREAM_OPERATORS)
            kind = self._prev.text.lower()
            query = super()._parse_select_query(nested or changes, table, parse_subquery_alias, parse_set_operation)
            if changes and not isinstance(query, exp.Subquery):
                raise CqlError(f"expected a query in parentheses after {kind.upper()}", start)
            if query is not None:
                query.meta.update({"start": start, "changes": kind} if changes else {"start": start})
            return query

        def parse_set_operation(self, this: exp.Expr | None, *args: Any, **kwargs: Any) -> exp.SetOperation | None:
            operator = self._here()
            operation = super().parse_set_operation(this, *args, **kwargs)
            if operation is not None:
                operation.meta["operator"] = operator
            return operation

        def _parse_projections(self) -> tuple[list[exp.Expr], list[exp.Expr] | None]:
            if self._next.token_type in NAMES_A_COLUMN or not self._match_texts(STREAM_OPERATORS):
                return super()._parse_projections()
            kind = self._prev
            distinct = self._match(TokenType.DISTINCT)
            items = self._wrapped_items() or self._parse_expressions()
            if not items:
                raise CqlError(f"expected columns after {kind.text.upper()}", kind.start)
            changes = self.expression(StreamClause(this=kind.text.lower(), expressions=items, distinct=distinct), kind)
            return [changes], None

        def _wrapped_items(self) -> list[exp.Expr]:
            """The items of `ISTREAM(a, b)`; none in `ISTREAM (a + b) * 2`."""
            index = self._index
            if self._match(TokenType.L_PAREN):
                items = self._parse_expressions()
                if self._match(TokenType.R_PAREN) and self._curr.token_type in (TokenType.FROM, TokenType.SENTINEL):
                    return items
            self._retreat(index)
            return []

        def _parse_join(
            self, skip_join_token: bool = False, parse_bracket: bool = False, alias_tokens: Any = None
        ) -> exp.Join | None:
            start = self._here()
            join = super()._parse_join(skip_join_token, parse_bracket, alias_tokens)
            if join is not None:
                join.meta["start"] = start
            return join

        def _parse_table_parts(self, *args: Any, **kwargs: Any) -> exp.Table | exp.Dot | None:
            source = super()._parse_table_parts(*args, **kwargs)
            start = self._here()
            if source is not None and (window := self._window()) is not None:
                source.meta.update(window=window, window_start=start)
            return source

        def _parse_subquery(self, this: exp.Expr | None, parse_alias: bool = True) -> exp.Subquery | None:
            # The window precedes the alias, which belongs to the sub-query.
            start, window = self._here(), self._window()
            subquery = super()._parse_subquery(this, parse_alias)
            if subquery is not None and window is not None:
                subquery.meta.update(window=window, window_start=start)
            return subquery

        def _parse_table_alias(self, alias_tokens: Any = None) -> exp.TableAlias | None:
            alias = super()._parse_table_alias(alias_tokens)
            if alias is not None and self._match(TokenType.L_BRACKET, advance=False):
                raise CqlError(f"a window belongs before the alias: [...] AS {alias.name}", self._here())
            return alias

        def _here(self) -> int | None:
            """The offset of the next token, or of the last one at the end of the text."""
            return self._curr.start if self._curr else self._prev.start if self._prev else None

        def _given(self) -> str:
            """The next token, for a message."""
            return repr(self._curr.text) if self._curr else "the end of the text"

        def _window(self) -> Window | None:
            if not self._match(TokenType.L_BRACKET):
                return None
            window = self._window_within()
            if not self._match(TokenType.R_BRACKET):
                raise CqlError(f"expected ] at the end of a window, not {self._given()}", self._here())
            return window

        def _window_within(self) -> Window:
            if self._match_texts(("NOW",)):
                return Window("range")
            if self._match_texts(("UNBOUNDED",)):
                return Window()
            if self._match_texts(("ROWS",)):
                return Window("rows", self._rows("ROWS"), self._rows("SLIDE") if self._match_texts(("SLIDE",)) else 0)
            if self._match_texts(("RANGE",)):
                if self._match_texts(("UNBOUNDED",)):
                    return Window()
                length = self._length("RANGE")
                slide = self._length("SLIDE") if self._match_texts(("SLIDE",)) else None
                if slide == 0:
                    raise CqlError("SLIDE needs a duration above 0", self._prev.start)
                return Window("range", length, slide or 0)
            ranges, rows = "[RANGE 10 SECONDS], [RANGE 10 SECONDS SLIDE 1 SECOND]", "[ROWS 100], [ROWS 100 SLIDE 10]"
            forms = f"{ranges}, {rows}, [NOW] or [UNBOUNDED]"
            raise CqlError(f"a window is one of {forms}, not {self._given()}", self._here())

        def _rows(self, word: str) -> int:
            if self._curr.token_type != TokenType.NUMBER or not self._curr.text.isdecimal() or not int(self._curr.text):
                raise CqlError(f"{word} needs a whole number above 0, not {self._given()}", self._here())
            self._advance()
            return int(self._prev.text)

        def _length(self, word: str) -> int:
            """Parse a number and a unit of time, to microseconds."""
            number = self._curr
            if not self._match(TokenType.NUMBER):
                raise CqlError(f"{word} needs a number and a unit, not {self._given()}", self._here())
            if not self._match_texts(UNIT_US):
                problem = f"expected a unit of time as in {word} {number.text} SECONDS, not {self._given()}"
                raise CqlError(f"{problem}; there are {UNIT_WORDS}", self._here())
            try:
                return parse_whole_us(number.text, UNIT_US[self._prev.text.upper()], f"{number.text} {self._prev.text}")
            except (PlanError, ValueError) as error:
                raise CqlError(f"{word}: {error}", number.start) from None


UNIT_WORDS = [names[1].lower() for names in UNIT_NAMES.values()]


def parse_text(text: str, into: type[exp.Expr] | None = None) -> exp.Expr:
    """Parse a text that has exactly one query or, with `into`, one expression."""
    dialect = Cql()
    try:
        found = (
            dialect.parse(text, error_level=ErrorLevel.IMMEDIATE)
            if into is None
            else dialect.parse_into(into, text, error_level=ErrorLevel.IMMEDIATE)
        )
    except CqlError:
        raise
    except ParseError as error:
        raise CqlError(*locate_parse_error(error, text)) from None
    except TokenError as error:
        raise translate_token_error(error) from None
    except Exception as error:  # for some invalid texts, sqlglot raises errors of Python
        raise CqlError(f"cannot be understood ({type(error).__name__} in the parser)") from None
    statements = [part for part in found if part is not None]
    if len(statements) != 1:
        raise CqlError(f"expected one {'query' if into is None else 'expression'}, not {len(statements)}")
    return statements[0]


def locate_parse_error(error: ParseError, text: str) -> tuple[str, int | None]:
    """Translate an error of sqlglot to our words, with the offset of its token."""
    first = error.errors[0] if error.errors else {}
    description, token = str(first.get("description") or error), first.get("highlight")
    if not token or first.get("line") is None:
        return description.rstrip("."), None
    # The column is that of the token's last character.
    end = sum(len(line) + 1 for line in text.split("\n")[: first["line"] - 1]) + first["col"] - 1
    start = max(end - len(token) + 1, 0)
    if description.startswith("Required keyword"):
        return f"something is missing at {token!r}", start
    if description.startswith("Expected table name"):
        return f"expected the name of a stream, stored relation or query at {token!r}", start
    if description.startswith("Invalid expression"):
        return f"{token!r} is not expected here", start
    return f"{description.rstrip('.')} at {token!r}", start


def translate_token_error(error: TokenError) -> CqlError:
    """The error for a quote or comment that is not closed."""
    where = re.search(r"Missing (\S+) from \d+:(\d+)", f"{error} {error.__cause__}")
    if where:
        return CqlError(f"expected {where[1]}: what starts here is not closed", int(where[2]))
    return CqlError("cannot be split into words")
