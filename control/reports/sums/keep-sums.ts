/** Has records added to the kept sums at intervals, and tells how far it is when there are many, such as after an upgrade. */
import { type Cancel, DAY_MS, type Schedule } from '../../../schema/clock.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import type { RolledUp, RollUpRequest } from './roll-up.ts'

export interface KeepSumsDeps {
  readonly schedule: Schedule
  /** Milliseconds UTC. */
  readonly now: () => number
  /** How long call records are kept; 0: for ever. */
  readonly days: number
  readonly log: Log
  readonly rollUp: (request: RollUpRequest) => Promise<RolledUp>
}

/** What the sums lack meanwhile is read from the records. */
const INTERVAL_MS = 10_000
/** A group is written once for all records that are added together: with fewer, each costs more. */
const LEAST_RECORDS = 40_000
/** Then fewer are added, too: what is read from the records costs each summary about 3 us for each. */
const LONGEST_WAIT_MS = 600_000
/** Between two steps of many. */
const BUSY_MS = 100
/** After a failure. */
const RETRY_MS = 60_000
/** Records that the sums lack, from which on progress is told. */
const MANY = 200_000

export function keepSums({ schedule, now, days, log, rollUp }: KeepSumsDeps): Cancel {
  // Not at once: the thread that does it takes as long to start as much else of a start.
  let cancel = schedule(() => void step(), INTERVAL_MS)
  let isStopped = false
  let isBuilding = false
  let isFailing = false
  /** When all records were in the sums. */
  let wholeAt = -Infinity

  async function step(): Promise<void> {
    const delayMs = await tried()
    if (!isStopped) cancel = schedule(() => void step(), delayMs)
  }

  async function tried(): Promise<number> {
    try {
      const keptFrom = days === 0 ? undefined : now() - days * DAY_MS
      const isDue = now() >= wholeAt + LONGEST_WAIT_MS
      const least = isDue ? undefined : LEAST_RECORDS
      const { added, behind } = await rollUp({ now: now(), keptFrom, least })
      if (isDue && behind < LEAST_RECORDS) wholeAt = now()
      isFailing = false
      tell(behind)
      return added > 0 && behind > MANY ? BUSY_MS : INTERVAL_MS
    } catch (error) {
      if (!isFailing && !isStopped)
        log('warn', 'call records could not be added to their sums', { error: String(error) })
      isFailing = true
      return RETRY_MS
    }
  }

  function tell(behind: number): void {
    const isMany = behind > MANY
    if (isMany) log('info', 'call records are being added to their sums', { records_left: behind })
    else if (isBuilding) log('info', 'all call records are in their sums', {})
    isBuilding = isMany
  }

  return () => {
    isStopped = true
    cancel()
  }
}
