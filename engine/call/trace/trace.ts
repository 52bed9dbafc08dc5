/** The trace of one call: its messages on all legs, and the decisions between them. */
import type { Attempt, CallRecord } from '../../../schema/contracts/call-record.ts'
import { moneyToDecimal } from '../../../schema/columns.ts'
import type { Funds } from '../../../schema/contracts/charging.ts'
import { denialText, storedDenialText } from '../../../schema/contracts/denials.ts'
import type { ActiveCalls } from '../active-calls.ts'
import type { Note } from '../call-machine/state.ts'
import { denialTextOf } from '../cdr/end-reason.ts'
import type { Destination } from '../inbound/route.ts'
import { hostPort, readAddress, readUri } from '../../sip-server/message/index.ts'
import type { Trace, TraceEntry, TraceMessage, LegPeer } from '../../../schema/contracts/calls.ts'
import type { MessageFlow } from '../../sip-server/application.ts'

interface TraceDeps {
  readonly calls: Pick<ActiveCalls, 'story'>
  readonly messages: MessageLog
  /** Lets calls go on between two slices of the search. */
  readonly pause: () => Promise<void>
}

/** The INVITE comes before its call begins, and may have been challenged before. */
const BEFORE_MS = 1_000

/** Undefined: the call is no longer in memory. */
export async function traceOf(callUuid: string, deps: TraceDeps): Promise<Trace | undefined> {
  const story = deps.calls.story(callUuid)
  if (story === undefined) return undefined
  const { tenantId, isPaidByPlatform, stampOffsetMs } = story
  // A call that began here has its uuid in the place of the Call-ID of an INVITE that nobody has
  // sent.
  const legs = story.legs.filter((callId) => callId !== callUuid)
  const startedAt = story.startedAt - stampOffsetMs
  const isComplete = deps.messages.since <= startedAt
  const toStamp = <Entry extends TraceEntry>(entry: Entry): Entry => ({
    ...entry,
    at: entry.at + stampOffsetMs,
  })
  const logged = await deps.messages.find(legs, startedAt - BEFORE_MS, deps.pause)
  const messages = logged.flatMap((message) => readMessage(message, legs)).map(toStamp)
  const decisions = story.notes.map(readNote).map(toStamp)
  const tries = story.attempts.map(readAttempt)
  const ends = story.record === undefined ? [] : [endOf(story.record)]
  // Sorting is stable: of one millisecond, messages come before what was made of them.
  const entries = [...messages, ...decisions, ...tries, ...ends].toSorted((a, b) => a.at - b.at)
  const peers = peersOf(legs, messages, story.notes)
  return { tenantId, isPaidByPlatform, legs, peers, entries, isComplete }
}

/** Notes refer to working data, passwords of carriers included: only a part is shown. */
function readNote(note: Note): TraceEntry {
  const { at, what } = note
  switch (what) {
    case 'recognized':
      return { kind: 'decision', at, what, detail: { origin: note.origin.kind } }
    case 'charged': {
      const { verdict } = note
      if (verdict.kind === 'unreachable')
        return {
          kind: 'decision',
          at,
          what,
          detail: {
            verdict: verdict.kind,
            ...(verdict.by && { code: verdict.by, denialText: denialText(verdict.by) }),
          },
        }
      const isDenied = verdict.kind === 'denied'
      const code = isDenied ? verdict.code : null
      const denial = isDenied && { denialText: denialText(verdict.code, verdict.detail) }
      const granted = verdict.kind === 'granted' ? verdict.grantedSeconds : 0
      const { customerId = null, ratePrefix = null, currency = null } = verdict.account ?? {}
      // Without limit there is no number for it.
      const grantedSeconds = Number.isFinite(granted) ? granted : null
      const decided = { verdict: verdict.kind, code, grantedSeconds, customerId, ratePrefix }
      const detail = {
        ...decided,
        ...denial,
        ...(verdict.funds && { ...shown(verdict.funds), currency }),
      }
      return { kind: 'decision', at, what, detail }
    }
    case 'reported':
      return { kind: 'decision', at, what, detail: { by: note.by, heard: note.stream } }
    case 'transfer':
      return { kind: 'decision', at, what, detail: { ...note.transfer } }
    case 'routed':
    default: {
      const { direction, ...route } = note.route
      if (route.kind === 'candidates') {
        const candidates = route.candidates.map(({ uri }) => uri)
        const prices = pricesOf(route.candidates)
        const detail = { direction, candidates, ...(prices.length > 0 && { prices }) }
        return { kind: 'decision', at, what, detail }
      }
      const { end } = route
      const code = 'code' in end ? end.code : null
      const refusal = { direction, candidates: [], code, denialText: denialTextOf(end) ?? null }
      return { kind: 'decision', at, what, detail: refusal }
    }
  }
}

const shown = ({ balanceMicros, availableMicros }: Funds) => ({
  balance: moneyToDecimal(balanceMicros),
  available: moneyToDecimal(availableMicros),
})

/**
 * The price of one minute for each carrier of a least-cost route, in their order. Null: not known.
 */
const pricesOf = (candidates: readonly Destination[]) =>
  candidates.flatMap((candidate) => {
    if (candidate.kind !== 'gateway' || candidate.price === undefined) return []
    const { carrierName: carrier, price } = candidate
    return [{ carrier, price: price && moneyToDecimal(price.minuteMicros) }]
  })

const readAttempt = ({ endedAt: at, destination, status, reason }: Attempt): TraceEntry => ({
  kind: 'decision',
  at,
  what: 'tried',
  detail: { destination, status, reason },
})

function endOf(record: CallRecord): TraceEntry {
  const { endedAt: at, disposition, sipCode, hangupBy, hangupCause, denialCode, billsec } = record
  const detail = {
    disposition,
    sipCode,
    hangupBy,
    hangupCause,
    denialCode,
    billsec,
    denialText: storedDenialText(denialCode, record.denialText ?? null),
    ...(record.quality && { quality: record.quality }),
  }
  return { kind: 'decision', at, what: 'ended', detail }
}

/** `received|<protocol>|<address>|<port>` or `sent|…`, and the message on the next lines. */
function readMessage({ at, payload }: LoggedMessage, legs: readonly string[]): TraceMessage[] {
  const end = payload.indexOf('\r\n')
  const [direction, transport = '', host = '', port = ''] = payload.slice(0, end).split('|')
  const leg = legs.find((callId) => payload.includes(callId))
  if (leg === undefined || (direction !== 'received' && direction !== 'sent')) return []
  const address = hostPort(host, Number(port))
  const text = withoutSecrets(payload.slice(end + 2))
  return [{ kind: 'message', at, direction, leg, transport, address, text }]
}

/** A digest response can be guessed at, and an SDES key opens the media. */
const withoutSecrets = (text: string): string =>
  text
    .replace(/^((?:proxy-)?authorization):[^\r\n]*/gim, '$1: (not shown)')
    .replace(/^(a=crypto:\d+ \S+ inline:)[^\r\n]*/gim, '$1(not shown)')

/** `legs`: Call-IDs; `messages` in the order of time. */
export function peersOf(
  legs: readonly string[],
  messages: readonly TraceMessage[],
  notes: readonly Note[],
): readonly LegPeer[] {
  const destinations = notes.flatMap((note) =>
    note.what === 'routed' && note.route.kind === 'candidates' ? note.route.candidates : [],
  )
  return legs.map((callId) => {
    const ofLeg = messages.filter(({ leg }) => leg === callId)
    const address = ofLeg.find(({ direction }) => direction === 'received')?.address ?? null
    const invite = ofLeg.find(({ text }) => text.startsWith('INVITE '))
    if (invite === undefined) return { role: null, name: null, address }
    return invite.direction === 'received'
      ? { role: 'caller', name: callerIn(invite.text), address }
      : { role: 'called', name: calledIn(invite.text, destinations), address }
  })
}

function callerIn(invite: string): string | null {
  const { user, hostPort } = readUri(readAddress(fromIn(invite)).uri)
  return orNull(user === '' ? hostPort : user)
}

const fromIn = (invite: string): string => /^(?:from|f)[ \t]*:[ \t]*(.*)$/im.exec(invite)?.[1] ?? ''

/** The Request-URI has the address of a node or a gateway, or what a phone has registered. */
function calledIn(invite: string, destinations: readonly Destination[]): string | null {
  const uri = invite.split(' ', 2)[1] ?? ''
  const { user, hostPort } = readUri(uri)
  const address = withoutDefaultPort(hostPort)
  const isThere = (other: string): boolean =>
    withoutDefaultPort(readUri(other).hostPort) === address && address !== ''
  for (const destination of destinations)
    switch (destination.kind) {
      case 'gateway':
        if (isThere(destination.uri)) return destination.carrierName
        break
      case 'agent':
        if (isThere(destination.uri)) return destination.name
        break
      case 'extension':
        if (destination.phones.some((phone) => phone.uri === uri))
          return orNull(readUri(destination.uri).user)
        break
      case 'node':
        if (isThere(destination.uri)) return hostPort
        break
      default:
    }
  return orNull(user === '' ? hostPort : `${user}@${hostPort}`)
}

const withoutDefaultPort = (hostPort: string): string =>
  hostPort.toLowerCase().replace(/:5060$/, '')

const orNull = (text: string): string | null => (text === '' ? null : text)

// The last SIP messages between server and call control, received and sent. During a call they are
// only copied into one block of memory outside the garbage-collected heap. They are parsed for a
// trace.

interface LoggedMessage {
  /** Milliseconds UTC. */
  readonly at: number
  /** `received` or `sent`, protocol, address and port on the first line, then the message. */
  readonly payload: string
}

/** About 11 seconds of 200 calls/s, 18 minutes of two. Taken from the system as it fills. */
const BYTES = 32 * 1_048_576
/** Few messages are shorter. */
const BYTES_OF_A_MESSAGE = 512
/** Searched in one go: about a millisecond. */
const SLICE_BYTES = 2 * 1_048_576
/** UTF-8 of a string takes at most this many bytes per character. */
const WIDEST = 3

export class MessageLog {
  readonly #now: () => number
  /** While it has dropped none for others; Infinity: one was larger than the memory. */
  #completeSince: number
  readonly #bytes: Buffer
  /** How many there may be, however short. */
  readonly #slots: number
  /** By message number, modulo `#slots`. */
  readonly #starts: Uint32Array
  readonly #lengths: Uint32Array
  readonly #times: Float64Array
  /** Numbers of the oldest message and of the next. */
  #oldest = 0
  #next = 0
  /** The position of the next message. */
  #position = 0
  /** By peer, or by the listener that has sent. Of UDP alone, which has one object for each. */
  readonly #heads = new WeakMap<object, string>()

  /** `now` in milliseconds UTC. */
  constructor(now: () => number, bytes = BYTES) {
    this.#now = now
    this.#completeSince = now()
    this.#bytes = Buffer.allocUnsafeSlow(bytes)
    this.#slots = Math.max(100, Math.ceil(bytes / BYTES_OF_A_MESSAGE))
    this.#starts = new Uint32Array(this.#slots)
    this.#lengths = new Uint32Array(this.#slots)
    this.#times = new Float64Array(this.#slots)
  }

  add(direction: 'received' | 'sent', flow: MessageFlow, text: string): void {
    const head = this.#headOf(direction, flow)
    const room = (head.length + text.length) * WIDEST
    if (room > this.#bytes.length) {
      this.#completeSince = Infinity
      return
    }
    this.#makeRoom(room)
    const slot = this.#next++ % this.#slots
    const headBytes = this.#bytes.write(head, this.#position)
    const length = headBytes + this.#bytes.write(text, this.#position + headBytes)
    this.#starts[slot] = this.#position
    this.#lengths[slot] = length
    this.#times[slot] = this.#now()
    this.#position += length
  }

  #headOf(direction: 'received' | 'sent', flow: MessageFlow): string {
    const { listener } = flow
    if (listener.protocol !== 'udp') return headOf(direction, flow)
    const sender = direction === 'sent' ? listener : flow
    const known = this.#heads.get(sender)
    if (known !== undefined) return known
    const head = headOf(direction, flow)
    this.#heads.set(sender, head)
    return head
  }

  /** How many messages are stored. */
  get size(): number {
    return this.#next - this.#oldest
  }

  /** From then on it has every message. */
  get since(): number {
    if (this.#oldest === 0) return this.#completeSince
    return this.#times[this.#oldest % this.#slots] ?? 0
  }

  /**
   * Returns the messages of these Call-IDs, oldest first. `pause` lets calls continue between two
   * slices.
   */
  async find(
    callIds: readonly string[],
    from: number,
    pause: () => Promise<void>,
  ): Promise<readonly LoggedMessage[]> {
    const hits: number[] = []
    for (const callId of callIds)
      for (let start = 0; start < this.#bytes.length; start += SLICE_BYTES) {
        this.#search(callId, start, hits)
        await pause()
      }
    // A hit may have been overwritten by another message since the search: the text is checked
    // again.
    const candidates = this.#at(
      hits.toSorted((a, b) => a - b),
      from,
    )
    return candidates.filter(({ payload }) => callIds.some((callId) => payload.includes(callId)))
  }

  #search(callId: string, start: number, hits: number[]): void {
    const slice = this.#bytes.subarray(start, start + SLICE_BYTES + callId.length)
    for (let hit = slice.indexOf(callId); hit !== -1; hit = slice.indexOf(callId, hit + 1))
      hits.push(start + hit)
  }

  /** The messages that lie at these places. */
  #at(hits: readonly number[], from: number): LoggedMessage[] {
    const messages: LoggedMessage[] = []
    for (let number = this.#oldest; number < this.#next; number++) {
      const slot = number % this.#slots
      const start = this.#starts[slot] ?? 0
      const end = start + (this.#lengths[slot] ?? 0)
      const at = this.#times[slot] ?? 0
      if (at < from || !hasBetween(hits, start, end)) continue
      messages.push({ at, payload: this.#bytes.toString('utf8', start, end) })
    }
    return messages
  }

  /** The oldest messages are those behind the position where is written. */
  #makeRoom(room: number): void {
    if (this.#position + room > this.#bytes.length) {
      this.#forgetUpTo(this.#bytes.length)
      this.#position = 0
    }
    this.#forgetUpTo(this.#position + room)
    if (this.size === this.#slots) this.#oldest += 1
  }

  #forgetUpTo(end: number): void {
    while (this.size > 0) {
      const start = this.#starts[this.#oldest % this.#slots] ?? 0
      if (start < this.#position || start >= end) return
      this.#oldest += 1
    }
  }
}

/** Whether one of these ascending numbers is at least `start` and below `end`. */
function hasBetween(numbers: readonly number[], start: number, end: number): boolean {
  let [low, high] = [0, numbers.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if ((numbers[middle] ?? 0) < start) low = middle + 1
    else high = middle
  }
  return (numbers[low] ?? end) < end
}

/** A message that was sent by UDP shows our listener, one by a stream its far end. */
function headOf(direction: 'received' | 'sent', { listener, address, port }: MessageFlow): string {
  const { protocol, advertisedHost, advertisedPort } = listener
  const isOwn = direction === 'sent' && protocol === 'udp'
  const place = isOwn ? `${advertisedHost}|${advertisedPort}` : `${address}|${port}`
  return `${direction}|${protocol}|${place}\r\n`
}
