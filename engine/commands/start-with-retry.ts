/**
 * A start waits for its database server. Calls of the last run wait in the journal on this disk: a
 * restart of the machine while the server is away must not leave them there until an operator
 * comes.
 */
import { correlationIds } from '../../control/http/front.ts'
import { serveWaiting } from '../../control/http/http-server.ts'
import type { Clocks, Schedule } from '../../schema/clock.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { isServerUnavailable, whyServerUnavailable } from '../../schema/postgres/open.ts'
import type { CertificateFiles } from '../config.ts'
import type { HostAndPort } from '../setting-kinds.ts'
import { Credentials } from '../sip-server/index.ts'

export interface RetriedStart<Started> extends Pick<Clocks, 'steadyNow'> {
  /** Leaves nothing behind when it fails. */
  readonly start: () => Promise<Started>
  /** Absent: a start that fails is not tried again. */
  readonly databaseUrl: string | undefined
  /** Address of the API. */
  readonly address: HostAndPort
  /** Certificate of the API; undefined: plain HTTP. */
  readonly certificate: CertificateFiles | undefined
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly schedule: Schedule
  readonly randomBytes: (size: number) => Buffer
  readonly log: Log
  /** Resolves when the process is to end. */
  readonly stopped: Promise<void>
  /** Before each attempt, with one line about the present state. */
  readonly onWaiting: (status: string) => void
}

/** Pauses between attempts; the last one is for all that follow. */
const DELAYS_MS = [500, 1_000, 2_000, 5_000] as const
const LONGEST_MS = 5_000
/** Interval of the log line that the start still waits. */
const REPORT_MS = 30_000

/** Undefined: the process was to end before it could start. */
export async function startWithRetry<Started>(
  deps: RetriedStart<Started>,
): Promise<Started | undefined> {
  const { start, databaseUrl } = deps
  for (;;) {
    try {
      return await start()
    } catch (error) {
      if (databaseUrl === undefined || !isServerUnavailable(error)) throw error
      if (!(await hasReturned(databaseUrl, error, deps))) return undefined
    }
  }
}

/** Waits for the server. False: the process is to end. */
async function hasReturned(
  url: string,
  error: unknown,
  deps: Omit<RetriedStart<unknown>, 'start'>,
): Promise<boolean> {
  const { steadyNow: now, log, stopped } = deps
  const since = now()
  let reportedAt = since
  let reason = error instanceof Error ? error.message : String(error)
  log(
    'error',
    'the database server does not answer: this instance waits for it, and takes no calls',
    {
      reason,
    },
  )
  const close = await answerMeanwhile(deps)
  try {
    for (let attempt = 0; ; attempt += 1) {
      deps.onWaiting('waiting for the database server')
      if (!(await pause(DELAYS_MS[attempt] ?? LONGEST_MS, deps))) return false
      const answer = await Promise.race([whyServerUnavailable(url), stopped.then(() => null)])
      if (answer === null) return false
      const waitedSeconds = Math.round((now() - since) / 1_000)
      if (answer === undefined) {
        log('info', 'the database server answers: the start goes on', { waitedSeconds })
        return true
      }
      if (answer === reason && now() - reportedAt < REPORT_MS) continue
      reason = answer
      reportedAt = now()
      log('warn', 'still waiting for the database server', { reason, waitedSeconds })
    }
  } finally {
    await close()
  }
}

/** False: the process is to end. */
function pause(
  delayMs: number,
  { schedule, stopped }: Pick<RetriedStart<unknown>, 'schedule' | 'stopped'>,
): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = schedule(() => resolve(true), delayMs)
    const end = (): void => {
      cancel()
      resolve(false)
    }
    void stopped.then(end)
  })
}

/**
 * Without the port the start still waits. A port that the system chooses is printed when it serves.
 */
async function answerMeanwhile({
  address,
  certificate,
  now,
  randomBytes,
  log,
}: Pick<RetriedStart<unknown>, 'address' | 'certificate' | 'now' | 'randomBytes' | 'log'>): Promise<
  () => Promise<void>
> {
  if (address.port === 0) return () => Promise.resolve()
  try {
    const credentials = certificate && new Credentials(certificate, log, now)
    credentials?.stop()
    return await serveWaiting(address, correlationIds(randomBytes), credentials)
  } catch (error) {
    log('warn', 'the API address cannot be opened while this instance waits', { error })
    return () => Promise.resolve()
  }
}
