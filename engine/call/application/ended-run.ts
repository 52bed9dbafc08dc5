/** The end of a worker: calls that it has been asked about go on, and those that it has end. */
import { cause, type End } from '../cdr/end-reason.ts'
import type { ActiveCalls } from '../active-calls.ts'
import type { MachineEvent } from '../call-machine/protocol.ts'

interface EndedRunDeps {
  readonly calls: Pick<ActiveCalls, 'ofApplication'>
  readonly dispatch: (event: MachineEvent) => void
}

const lost: End = {
  kind: 'cut',
  by: 'system',
  cause: cause.connectionLost,
  code: 'application_lost',
}

export function endRun(run: number, { calls, dispatch }: EndedRunDeps): void {
  for (const { start, dialing } of calls.ofApplication(run)) {
    const { callUuid } = start
    const asked = dialing?.current?.kind === 'application' ? dialing.attempts : undefined
    if (asked === undefined || start.applicationRun === run)
      dispatch({ type: 'stop', callUuid, end: lost })
    else for (const { legId } of asked) dispatch({ type: 'applicationLost', legId })
  }
}
