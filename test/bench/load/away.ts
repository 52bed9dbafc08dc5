/**
 * Parties that hang up while no process is there: what their calls are charged, beside what they
 * talked.
 */
import { setTimeout as pause } from 'node:timers/promises'
import { TollgateProcess } from '../../support/tollgate-process.ts'
import { type Leaving, nothingLeft, UnattendedCalls } from '../../support/unattended-calls.ts'
import { caller, oneCustomer } from './one-customer.ts'
import type { Row } from './rows.ts'

/** How long no process is there. */
const AWAY_SECONDS = [5, 40, 200]
/** Phones give up repeating a BYE after 32 s: those of a longer absence are heard by nobody. */
const LEAVING_SECONDS = 30
const TALKED_MS = 2_000

interface Absence {
  /** The calls of each absence. */
  readonly calls: number
  readonly ways: readonly Leaving[]
  /**
   * The end by `kill -9`, or in order, with the sockets of a service manager, in which what comes
   * meanwhile waits.
   */
  readonly end: 'kill' | 'restart'
}

/** All absences beside each other. */
export async function rowsOfAbsences(absence: Absence): Promise<readonly Row[]> {
  if (absence.calls === 0) return []
  return (await Promise.all(AWAY_SECONDS.map((seconds) => rowsOf(absence, seconds)))).flat()
}

async function rowsOf({ calls, ways, end }: Absence, seconds: number): Promise<readonly Row[]> {
  const start = (port: number): Promise<TollgateProcess> =>
    TollgateProcess.start(
      oneCustomer([port], 4, '0.60'),
      { LOG_LEVEL: 'warn' },
      { isActivated: end === 'restart' },
    )
  const { tollgate, unattended } = await UnattendedCalls.begin(start, { calls, ways, from: caller })
  try {
    await pause(TALKED_MS)
    if (end === 'kill') await tollgate.kill()
    else await tollgate.terminate()
    unattended.leave(Math.min(seconds - 1, LEAVING_SECONDS) * 1_000)
    await pause(seconds * 1_000)
    await tollgate.restart()
    const sums = await unattended.sums(tollgate)
    await nothingLeft(tollgate).catch(() => undefined)
    const left = tollgate.countUnstored()
    const { balance, ledger } = tollgate.wallet('load')
    const { talked, charged, lasting, paidWhole, wrong } = sums
    const isPaid = charged <= talked + calls
    const name = `away for ${seconds} s, ${calls} calls`
    const text = `${charged} s charged, ${talked.toFixed(1)} s talked`
    return [
      [`${name}: Σ charged at most Σ talked + 1 s a call`, text, isPaid],
      [`${name}: one record each, nothing live`, `${wrong + left} wrong`, wrong + left === 0],
      [
        `${name}: those that went on are paid whole`,
        `${paidWhole} of ${lasting}`,
        paidWhole === lasting,
      ],
      [`${name}: balance = ledger`, `${balance / 1e6} = ${ledger / 1e6}`, balance === ledger],
    ]
  } finally {
    unattended.stop()
    await tollgate.stop()
  }
}
