"""The queries of a store in PostgreSQL's SQL, each for one team.

All queries of a store are written once, in the SQL of SQLite. `translate` turns one into PostgreSQL's, so that both
engines answer the same by construction. It works on the parsed statement (sqlglot), where it also adds the team to
every table that a statement names: no statement can reach the rows of another team.

What differs, and what each function below is for: conditions are integers in SQLite; `IS` compares values; a query may
name columns that it does not group by; tables of JSON arrays; `INSERT OR REPLACE`; a negative `LIMIT`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import sqlglot
from sqlglot import Expr, exp

SCHEMA: Final = "turnlog"
"""The namespace of the tables, which a database may hold beside those of others."""

TEAM: Final = "team_key"

UNIQUE: Final[dict[str, tuple[str, ...]]] = {
    "annotations": ("session_id",),
    "answers": ("message_id",),
    "archive": ("source_key", "generation", "start"),
    "archived_texts": ("message_key", "source_key"),
    "blob_claims": ("message_key", "sha256"),
    "blob_garbage": ("sha256",),
    "blob_holders": ("sha256", "owner"),
    "blob_uses": ("message_key", "sha256"),
    "blobs": ("sha256",),
    "call_totals": ("tool_name", "tool_kind", "command", "model_key", "quarter_hour", "session_key"),
    "changes": ("seq",),
    "counters": ("name",),
    "diagnostics": ("source_key", "generation", "offset", "reason"),
    "edit_totals": ("path", "session_key", "quarter_hour"),
    "events": ("session_key", "position", "external_id"),
    "frames": ("key",),
    "generations": ("source_key", "generation"),
    "gone": ("seq", "session_key", "is_event", "position", "id"),
    "id_secrets": ("user_id",),
    "leaf_titles": ("agent", "record_id", "source_key"),
    "links": ("child_id", "parent_id", "kind"),
    "memberships": ("session_key", "position", "message_key"),
    "message_digests": ("message_key",),
    "messages": ("agent", "external_id", "owner"),
    "models": ("name",),
    "more_paths": ("path", "message_key", "sequence"),
    "owners": ("user", "team", "task", "machine"),
    "parts": ("message_key", "sequence"),
    "price_versions": ("name",),
    "projects": ("path",),
    "runs": ("id",),
    "session_copies": ("store", "session_id"),
    "session_digests": ("session_key",),
    "session_owners": ("session_id",),
    "sessions": ("agent", "external_id"),
    "settings": ("name",),
    "source_sessions": ("session_id", "source_key"),
    "sources": ("path",),
    "spills": ("session_id", "name"),
    "streams": ("session_key", "source_key"),
    "superseded": ("message_key", "session_key"),
    "tasks": ("id",),
    "tombstones": ("session_id",),
    "touches": ("message_key", "path"),
    "usage": ("quarter_hour", "model_key", "session_key", "is_total"),
}
"""Table -> the columns that identify a row within its team, by which a conflict is recognised."""

_INTEGERS: Final = re.compile(r"key$|^position$|_key$")
"""Columns that are integers, where an array of JSON is compared with one."""

_PARAMETERS: Final = re.compile(r"'(?:[^']|'')*'|\?(\d*)|:([a-z]\w*)")
"""A text, which is left as it is, or a parameter."""


class Statement(NamedTuple):
    """A statement in PostgreSQL's SQL, with parameters `$1`, `$2` and so on."""

    sql: str
    names: tuple[str | int, ...]
    """For each parameter its name, or its index among those that the caller gives."""


@lru_cache(maxsize=2000)
def translate(sql: str, team: int) -> Statement:
    """A statement for one team. Raises sqlglot's ParseError for text that is no SQL."""
    text, names = _number_parameters(sql)
    tree = sqlglot.parse_one(text, read="sqlite")
    for mark in list(tree.find_all(exp.Placeholder)):
        mark.replace(exp.Parameter(this=exp.Literal.number(mark.name[1:])))
    for change in _CHANGES:
        tree = change(tree)
    return Statement(_of_team(tree, team).sql("postgres", identify=True), names)


def _number_parameters(sql: str) -> tuple[str, tuple[str | int, ...]]:
    """The statement with parameters `:_1`, `:_2` …, and what each of them is."""
    names: list[str | int] = []
    count = 0

    def number(found: re.Match[str]) -> str:
        nonlocal count
        if found[0].startswith("'"):
            return found[0]
        name = found[2] or int(found[1] or 0) - 1
        if name == -1:
            name, count = count, count + 1
        if name not in names:
            names.append(name)
        return f":_{names.index(name) + 1}"

    return _PARAMETERS.sub(number, sql), tuple(names)


# -- conditions, which are integers in SQLite

_CONDITIONS: Final = (exp.Connector, exp.Not, exp.Predicate, exp.Boolean, exp.Escape)


def _is_condition(node: Expr) -> bool:
    if isinstance(node, exp.Paren):
        return _is_condition(node.this)
    return isinstance(node, _CONDITIONS)


def _wants_condition(node: Expr) -> bool:
    """Whether PostgreSQL expects a condition where this expression is."""
    parent, place = node.parent, node.arg_key
    match parent:
        case exp.Paren():
            return _wants_condition(parent)
        case exp.Where() | exp.Having() | exp.Not() | exp.Connector():
            return True
        case exp.Join():
            return place == "on"
        case exp.If():
            return place == "this" and not (isinstance(parent.parent, exp.Case) and parent.parent.this is not None)
        case exp.Filter():
            return False
        case _:
            return False


def _conditions(tree: Expr) -> Expr:
    for node in reversed(list(tree.walk())):  # what is inside first
        if isinstance(node, exp.Paren):
            continue
        outer = _outermost(node)
        if _wants_condition(outer) and not _is_condition(node):
            node.replace(exp.NEQ(this=_bracketed(node.copy()), expression=exp.Literal.number(0)))
        elif _is_condition(node) and _takes_value(outer):
            node.replace(exp.cast(exp.paren(node.copy()), "int"))
    return tree


def _outermost(node: Expr) -> Expr:
    """The expression with all the brackets around it."""
    while isinstance(node.parent, exp.Paren):
        node = node.parent
    return node


def _bracketed(node: Expr) -> Expr:
    simple = (exp.Column, exp.Literal, exp.Parameter, exp.Func, exp.Subquery)
    return node if isinstance(node, simple) else exp.paren(node)


def _takes_value(node: Expr) -> bool:
    """Whether a condition is used as a number: summed, compared with a number or returned."""
    parent = node.parent
    if isinstance(parent, exp.EQ | exp.NEQ | exp.AggFunc | exp.Coalesce | exp.Add | exp.Sub | exp.Mul | exp.Is):
        return True
    return isinstance(parent, exp.If | exp.Case) and node.arg_key in ("true", "false", "default")


# -- what SQLite writes otherwise


def _comparisons(tree: Expr) -> Expr:
    """`a IS b` compares values where b is not NULL."""
    for node in list(tree.find_all(exp.Is)):
        if not isinstance(node.expression, exp.Null | exp.Boolean):
            node.replace(exp.NullSafeEQ(this=node.this.copy(), expression=node.expression.copy()))
    for node in list(tree.find_all(exp.Not)):
        if isinstance(node.this, exp.NullSafeEQ):
            node.replace(exp.NullSafeNEQ(this=node.this.this.copy(), expression=node.this.expression.copy()))
    return tree


def _likes(tree: Expr) -> Expr:
    """`LIKE` ignores the case of ASCII letters, as `ILIKE` does for texts that are ordered by their bytes."""
    for node in list(tree.find_all(exp.Like)):
        like = exp.ILike(this=node.this.copy(), expression=node.expression.copy())
        if isinstance(node.parent, exp.Escape):
            node.replace(like)
        else:
            node.replace(exp.Escape(this=like, expression=exp.Literal.string("")))
    return tree


def _joins(tree: Expr) -> Expr:
    """`CROSS JOIN … ON` fixes SQLite's order of tables; PostgreSQL chooses its own."""
    for join in tree.find_all(exp.Join):
        if join.kind == "CROSS" and join.args.get("on") is not None:
            join.set("kind", "INNER")
    return tree


def _limits(tree: Expr) -> Expr:
    """A negative limit is none."""
    for limit in tree.find_all(exp.Limit):
        if isinstance(limit.expression, exp.Parameter):
            limit.set("expression", exp.func("NULLIF", limit.expression.copy(), exp.Literal.number(-1)))
    return tree


def _json_arrays(tree: Expr) -> Expr:
    """`json_each` is a function of the schema; where its values are compared with integers, they are cast."""
    for select, inside in _looked_up(tree):
        if _INTEGERS.search(inside.this.name):
            for value in list(select.expressions):
                value.replace(exp.cast(value.copy(), "bigint"))
    return tree


def _lookups(tree: Expr) -> Expr:
    """A column that is looked for in an array is looked up in its index, however small the planner thinks the table is.

    As a join, it would read all of a table that has just been filled.
    """
    for select, inside in _looked_up(tree):
        if not any(select.args.get(clause) for clause in ("where", "joins", "distinct", "limit")):
            inside.replace(_raw("{} = ANY (ARRAY({}))", inside.this.copy(), select.copy()))
    return tree


def _looked_up(tree: Expr) -> list[tuple[exp.Select, exp.In]]:
    """The queries of `column IN (SELECT … FROM json_each(…))`, and these conditions."""
    found: list[tuple[exp.Select, exp.In]] = []
    for node in tree.find_all(exp.Anonymous):
        select = node.find_ancestor(exp.Select) if node.name.lower() == "json_each" else None
        inside = select.find_ancestor(exp.In) if select is not None else None
        if select is not None and inside is not None and isinstance(inside.this, exp.Column):
            query = inside.args.get("query")
            if query is not None and query.find(exp.Select) is select:
                found.append((select, inside))
    return found


def _functions(tree: Expr) -> Expr:
    for node in reversed(list(tree.find_all(exp.Anonymous))):  # what is inside first
        change = _FUNCTIONS.get(node.name.lower())
        if change is not None:
            node.replace(change(node))
    for node in list(tree.find_all(exp.JSONExtract, exp.JSONExtractScalar)):
        index = re.fullmatch(r"\$\[(\d+)\]", _path_text(node.expression))
        if index is not None:
            document = exp.cast(node.this.copy(), "json")
            node.replace(_raw("({} ->> {})", document, exp.Literal.number(index[1])))
        else:
            name = exp.Literal.string(_path_text(node.expression).removeprefix("$."))
            node.replace(_schema_function("json_field", node.this.copy(), name))
    for node in tree.find_all(exp.Substring):
        for name in ("start", "length"):
            if isinstance(node.args.get(name), exp.Parameter):
                node.set(name, exp.cast(node.args[name].copy(), "int"))
    for node in list(tree.find_all(exp.JSONArrayAgg)):
        node.replace(_raw("coalesce(json_agg({}), '[]')::text", node.this.copy()))
    return tree


def _path_text(path: Expr) -> str:
    return path.sql("sqlite").strip("'")


def _raw(template: str, *arguments: Expr) -> Expr:
    """PostgreSQL's SQL with expressions in the places of `{}`."""
    marks = [f"__argument_{index}" for index in range(len(arguments))]
    tree = sqlglot.parse_one(template.format(*marks), read="postgres")
    for mark, argument in zip(marks, arguments, strict=True):
        for column in list(tree.find_all(exp.Column)):
            if column.name == mark:
                column.replace(argument)
    return tree


def _time_text(call: exp.Anonymous) -> Expr:
    """`strftime(format, milliseconds / 1000.0, 'unixepoch')`, always with the format of times in JSON."""
    quotient = call.expressions[1]
    return _schema_function("time_text", quotient.this.copy())


def _schema_function(name: str, *arguments: Expr) -> Expr:
    call = exp.Anonymous(this=name, expressions=list(arguments))
    return exp.Dot(this=exp.to_identifier(SCHEMA), expression=call)


def _json_without_nulls(document: Expr) -> Expr:
    """`json_patch('{}', json_object(…))`: an object without the fields that are NULL."""
    pairs: list[Expr] = []
    for pair in document.expressions:
        name, value = exp.Literal.string(f'"{pair.this.name}":'), _raw("to_json({})::text", pair.expression.copy())
        pairs.append(exp.DPipe(this=name, expression=value))
    fields = exp.Anonymous(this="concat_ws", expressions=[exp.Literal.string(","), *pairs])
    return _schema_function("with_nul", _raw("'{{' || {} || '}}'", fields))


_FUNCTIONS: Final[dict[str, Callable[[exp.Anonymous], Expr]]] = {
    "casefold": lambda call: _schema_function("casefold", *[each.copy() for each in call.expressions]),
    "json_valid": lambda call: _schema_function("json_valid", *[each.copy() for each in call.expressions]),
    "resolve_path": lambda call: _schema_function("resolve_path", *[each.copy() for each in call.expressions]),
    "strftime": _time_text,
    "json_patch": lambda call: _json_without_nulls(call.expressions[1]),
    "json": lambda call: exp.cast(call.expressions[0].copy(), "json"),
    "zeroblob": lambda call: exp.cast(exp.Literal.string(""), "bytea"),
    "json_array": lambda call: exp.cast(
        exp.Anonymous(this="json_build_array", expressions=[each.copy() for each in call.expressions]), "text"
    ),
}


def _subqueries(tree: Expr) -> Expr:
    """Every query among the tables needs a name."""
    for number, node in enumerate(list(tree.find_all(exp.Subquery))):
        if isinstance(node.parent, exp.From | exp.Join) and not node.alias:
            node.set("alias", exp.TableAlias(this=exp.to_identifier(f"unnamed_{number}")))
    return tree


def _groups(tree: Expr) -> Expr:
    """SQLite takes columns that are not grouped by from any row; here they follow from those that are."""
    for select in list(tree.find_all(exp.Select)):
        group = select.args.get("group")
        if group is None:
            continue
        keys = [key for key in group.expressions if not (isinstance(key, exp.Literal) and key.is_string)]
        known = {key.sql() for key in keys}
        grouped = _positions(keys)
        order = select.args.get("order")
        for number, shown in enumerate([*select.expressions, *(order.expressions if order else ())], 1):
            if number in grouped and number <= len(select.expressions):
                continue
            for column in _bare_columns(shown):
                if column.sql() not in known:
                    known.add(column.sql())
                    keys.append(column.copy())
        group.set("expressions", keys)
    return tree


def _positions(keys: Sequence[Expr]) -> set[int]:
    return {int(key.name) for key in keys if isinstance(key, exp.Literal) and not key.is_string}


def _bare_columns(node: Expr) -> list[exp.Column]:
    """The columns of an expression that no sum and no other query contains."""
    if isinstance(node, exp.Column):
        return [node]
    if isinstance(node, exp.AggFunc | exp.Query):
        return []
    return [column for child in node.iter_expressions() for column in _bare_columns(child)]


def _empty_lists(tree: Expr) -> Expr:
    """Nothing is in an empty list."""
    for node in list(tree.find_all(exp.In)):
        if not node.expressions and not any(node.args.get(name) for name in ("query", "unnest", "field")):
            node.replace(exp.false())
    return tree


def _recursions(tree: Expr) -> Expr:
    """The parameter that a recursive query begins with has no type and no order of its own."""
    for cte in tree.find_all(exp.CTE):
        for column, shown in zip(cte.args["alias"].columns, _first_select(cte.this).expressions, strict=False):
            if isinstance(shown, exp.Parameter):
                kind = "bigint" if _INTEGERS.search(column.name) else 'text COLLATE "C"'
                shown.replace(_raw(f"{{}}::{kind}", shown.copy()))
    return tree


def _first_select(query: Expr) -> Expr:
    return _first_select(query.left) if isinstance(query, exp.SetOperation) else query


def _orders(tree: Expr) -> Expr:
    """Where there is no NULL, none comes first: PostgreSQL would not use the index."""
    for ordered in tree.find_all(exp.Ordered):
        if isinstance(ordered.this, exp.Column) and ordered.this.name in _NEVER_NULL:
            ordered.set("nulls_first", bool(ordered.args.get("desc")))
    return tree


_NEVER_NULL: Final = frozenset({"position", "key", "message_key", "session_key", "seq", "path", "offset", "generation"})

_CHANGES: Final = (
    *(_orders, _groups, _empty_lists, _recursions, _comparisons, _likes, _joins, _limits, _json_arrays, _functions),
    *(_subqueries, _conditions, _lookups),
)


# -- the team


def _of_team(tree: Expr, team: int) -> Expr:
    number = exp.Literal.number(team)
    for target in list(tree.find_all(exp.Update, exp.Delete)):
        _limit_target(target, number)
    for insert in list(tree.find_all(exp.Insert)):
        _fill_insert(insert, number)
    for table in list(tree.find_all(exp.Table)):
        _limit_table(table, number)
    return tree


def _qualified(table: exp.Table) -> exp.Table:
    return exp.table_(table.name, db=SCHEMA, alias=table.alias or None)


def _limit_target(statement: exp.Update | exp.Delete, team: Expr) -> None:
    table = statement.this
    name = table.alias or table.name
    statement.set("this", _qualified(table))
    statement.where(exp.column(TEAM, table=name).eq(team.copy()), copy=False)


def _fill_insert(insert: exp.Insert, team: Expr) -> None:
    target = insert.this
    table = target.this if isinstance(target, exp.Schema) else target
    columns = [column.name for column in target.expressions] if isinstance(target, exp.Schema) else []
    if not columns:
        raise ValueError(f"an insert into {table.name} names no columns")
    unique = UNIQUE[table.name]
    insert.set(
        "this", exp.Schema(this=_qualified(table), expressions=[exp.to_identifier(each) for each in (TEAM, *columns)])
    )
    source = insert.expression
    if isinstance(source, exp.Values):
        for row in source.expressions:
            row.set("expressions", [team.copy(), *row.expressions])
    else:
        for select in _selects_of(source):
            select.set("expressions", [team.copy(), *select.expressions])
    kind = insert.args.pop("alternative", None)
    if kind == "IGNORE":
        insert.set("conflict", exp.OnConflict(action=exp.Var(this="DO NOTHING")))
    elif kind == "REPLACE":
        values: list[Expr] = []
        for each in columns:
            if each not in unique:
                value = exp.column(each, table="excluded")
                values.append(exp.EQ(this=exp.Identifier(this=each, quoted=True), expression=value))
        action = "DO UPDATE" if values else "DO NOTHING"
        keys = [exp.to_identifier(each) for each in (TEAM, *unique)]
        insert.set("conflict", exp.OnConflict(action=exp.Var(this=action), conflict_keys=keys, expressions=values))
    elif (conflict := insert.args.get("conflict")) is not None and conflict.expressions:
        conflict.set("conflict_keys", [exp.to_identifier(each) for each in (TEAM, *unique)])
        for assignment in conflict.expressions:
            # Without its table, a column is ambiguous here.
            for column in list(assignment.expression.find_all(exp.Column)):
                if not column.table:
                    column.set("table", exp.to_identifier(table.name))


def _selects_of(query: Expr) -> list[exp.Select]:
    if isinstance(query, exp.SetOperation):
        return [*_selects_of(query.left), *_selects_of(query.right)]
    return [query] if isinstance(query, exp.Select) else _selects_of(query.this)


def _limit_table(table: exp.Table, team: Expr) -> None:
    """Put the team's rows in the place of a table that is read."""
    if table.db or not isinstance(table.this, exp.Identifier):
        if isinstance(table.this, exp.Anonymous) and table.this.name.lower() == "json_each":
            table.set("this", _schema_function("json_each", *[each.copy() for each in table.this.expressions]))
        return
    name = "counters" if table.name == "sqlite_sequence" else table.name
    if name not in UNIQUE:
        return  # named by WITH
    rows = exp.select("*").from_(exp.table_(name, db=SCHEMA)).where(exp.column(TEAM).eq(team.copy()))
    table.replace(rows.subquery(table.alias or table.name))
