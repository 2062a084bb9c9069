"""The hub's own addresses, below `/hub/v1`, one module a subject."""

from turnlog.hub.routes import budgets, figures, machines, rules, sharing, sign_in, team, tokens, trash

ROUTERS = (
    *(sign_in.router, team.router, tokens.router, machines.router, sharing.router, trash.router, rules.router),
    *(figures.router, budgets.router),
)
