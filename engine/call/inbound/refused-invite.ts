/**
 * INVITEs that the SIP server has refused by itself, because they are malformed or ask for what no
 * call has. One of a known source has a record, like each of its calls (SPECIFICATION.md §12.3):
 * nobody could find out else why they fail. A source that sends many has some: they come past
 * overload and the bound on calls.
 */
import { MINUTE_MS } from '../../../schema/clock.ts'
import type { Origin } from '../../routing/routing.ts'
import type { CallDeps } from '../call-deps.ts'
import { refused } from '../cdr/end-reason.ts'
import type { Headers } from '../signalling.ts'
import { expectedDirection, refuse, sourceOf, unpaid } from './admission.ts'
import { readInvite, startOf } from './incoming-invite.ts'
import { tenantOf } from './route.ts'
import { hostPort } from '../../../schema/sip/index.ts'

/** An INVITE that the SIP server has refused, as it reports it. */
export interface ReportedRefusal {
  /** Equal for copies of it. */
  readonly key: string
  readonly uri: string
  readonly headers: Headers
  readonly protocol: string
  readonly sourceAddress: string
  readonly sourcePort: number
  readonly status: number
  readonly reason: string
}

/** A sender repeats its INVITE for so long, when our answer gets lost. */
const COPIES_MS = 32_000
/** Beyond, the oldest is forgotten, and a copy of it would get a record of its own. */
const MAX_REMEMBERED = 1_000

/**
 * Records a minute of one source: the calls that it makes are refused without a look at the load.
 */
const MAX_RECORDS_A_MINUTE = 60
/**
 * A network of a carrier may send from more addresses; those beyond have no record in that minute.
 */
const MAX_SOURCES = 1_000

export class RefusedInviteRecords {
  readonly #deps: CallDeps
  /** When each was recorded, by key, the oldest first. */
  readonly #recorded = new Map<string, number>()
  /** Records of this minute, by the address of their source. */
  readonly #bySource = new Map<string, number>()
  #minuteSince = -Infinity
  /** INVITEs that got no record, since the log was told. */
  #unrecorded = 0

  constructor(deps: CallDeps) {
    this.#deps = deps
  }

  /** Records it, unless its source is unknown. A phone has proved nothing yet: its source is. */
  take(invite: ReportedRefusal): void {
    const origin = this.#deps.routing.recognize(sourceOf(invite))
    if (origin.kind === 'unknown' || this.#isCopy(invite.key)) return
    if (this.#hasRoom(invite.sourceAddress)) this.#record(invite, origin)
    else this.#countUnrecorded()
  }

  #hasRoom(address: string): boolean {
    const now = this.#deps.now()
    if (now - this.#minuteSince >= MINUTE_MS) {
      this.#bySource.clear()
      this.#minuteSince = now
    }
    const records = this.#bySource.get(address)
    const isFull =
      records === undefined ? this.#bySource.size >= MAX_SOURCES : records >= MAX_RECORDS_A_MINUTE
    if (!isFull) this.#bySource.set(address, (records ?? 0) + 1)
    return !isFull
  }

  #countUnrecorded(): void {
    this.#unrecorded += 1
    if (this.#unrecorded > 1) return
    const { deadlines, log, now } = this.#deps
    deadlines.at(now() + MINUTE_MS, () => {
      log('warn', 'malformed INVITEs of known sources got no record', {
        invites: this.#unrecorded,
      })
      this.#unrecorded = 0
    })
  }

  #isCopy(key: string): boolean {
    const now = this.#deps.now()
    const before = this.#recorded.get(key)
    if (before !== undefined && now - before < COPIES_MS) return true
    this.#recorded.delete(key)
    this.#recorded.set(key, now)
    const [oldest = key] = this.#recorded.size > MAX_REMEMBERED ? this.#recorded.keys() : []
    if (oldest !== key) this.#recorded.delete(oldest)
    return false
  }

  #record({ headers, uri, status, reason, ...source }: ReportedRefusal, origin: Origin): void {
    const { calls, dispatch, newUuid, now, routing } = this.#deps
    const request = {
      method: 'INVITE',
      uri: readable(uri),
      headers: readableHeaders(headers),
      body: '',
      ...source,
    }
    const invite = readInvite(request, newUuid(), origin, routing)
    const address = hostPort(source.sourceAddress, source.sourcePort)
    const call = calls.begin({ start: startOf(invite, address, now()) })
    const { callUuid } = invite
    dispatch({
      type: 'admit',
      callUuid,
      origin,
      direction: expectedDirection(origin),
      isEmergency: false,
      account: unpaid(tenantOf(origin, this.#deps)),
      grantedSeconds: null,
      isFree: true,
      notes: [{ at: now(), what: 'recognized', origin }],
    })
    const end = refused(status, reason, 'bad_request', undefined, reason)
    refuse(call, end, this.#deps)
  }
}

/** Longer values are cut. */
const MAX_VALUE = 512

/** A text that a database takes: no control characters, no halves of characters. */
const readable = (text: string): string =>
  text.slice(0, MAX_VALUE).replace(/[\p{Cc}\p{Surrogate}]/gu, '')

function readableHeaders(headers: Headers): Headers {
  const cleaned: Headers = {}
  for (const name in headers) cleaned[name] = readable(headers[name] ?? '')
  return cleaned
}
