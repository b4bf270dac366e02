"""The steps of every migration: plan against the current target, show, and apply if requested."""

from dataclasses import dataclass

from kustos.cli.failures import CommandError, ExitCode
from kustos.cli.migrate.output import print_plan
from kustos.cli.migrate.plan import MigrationPlan, MigrationSource, make_plan
from kustos.cli.migrate.targets import Target, TargetPlace
from kustos.cli.output import OutputFormat
from kustos.runtime import SystemClock, garbage_collection_paused


@dataclass(frozen=True, slots=True, kw_only=True)
class Migration:
    """The target, and what the user permits there."""

    target: TargetPlace
    apply: bool
    skip_refused: bool
    replace_users: bool

    def run(self, source: MigrationSource, output: OutputFormat) -> int:
        """Plan, show, and apply if requested; return the exit code.

        A directory is planned again under its lock, so the applied plan is the one shown; with nothing to
        do it is not opened for writing. A refused item stops everything unless skipping is permitted: it
        could be a Deny.
        """
        with garbage_collection_paused():
            return self._run(source, output)

    def _run(self, source: MigrationSource, output: OutputFormat) -> int:
        with self.target.opened(writing=False) as target:
            plan = self._plan_for(source, target)
        applies, failure = self.apply and self._may_be_carried_out(plan), None
        if applies and not plan.is_empty:
            with self.target.opened(writing=True) as target:
                plan = self._plan_for(source, target)
                applies = self._may_be_carried_out(plan)
                if applies:
                    done = target.carry_out(plan)
                    plan, failure = done.plan, done.failure
        print_plan(plan, output, applied=applies)
        if failure is not None:
            raise failure
        if self.apply and not applies:
            raise CommandError(
                ExitCode.NO,
                "REFUSED",
                f"the plan refuses {len(plan.refused)} items, so nothing was changed; correct them at the "
                "source, or leave them out with `--skip-refused`",
            )
        return ExitCode.OK if plan.is_complete else ExitCode.NO

    def _may_be_carried_out(self, plan: MigrationPlan) -> bool:
        return self.skip_refused or not plan.refused

    def _plan_for(self, source: MigrationSource, target: Target) -> MigrationPlan:
        now_ms = SystemClock().wall_ms()
        return make_plan(source, target.state(), now_ms=now_ms, replace_users=self.replace_users)
