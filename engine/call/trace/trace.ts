/** The trace of one call: its messages on all legs, and the decisions between them. */
import type { Attempt, CallRecord } from '../../../schema/contracts/call-record.ts'
import { moneyToDecimal } from '../../../schema/columns.ts'
import type { Funds } from '../../../schema/contracts/charging.ts'
import { denialText, storedDenialText } from '../../../schema/contracts/denials.ts'
import type { ActiveCalls } from '../active-calls.ts'
import type { Note } from '../call-machine/state.ts'
import { denialTextOf } from '../cdr/end-reason.ts'
import type { CallDestination } from '../inbound/route.ts'
import { hostPort, readAddress, readUri } from '../../../schema/sip/index.ts'
import type { Trace, TraceEntry, TraceMessage, LegPeer } from '../../../schema/contracts/calls.ts'
import type { LoggedMessage, MessageLog } from './message-log.ts'

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
    case 'hook': {
      const { hook, by, decision = null, failed = null, fallback = null, tenantId } = note
      const owner = tenantId != null && { tenantId }
      const detail = { hook, by, decision, failed, fallback, ...owner }
      return { kind: 'decision', at, what, detail }
    }
    case 'ruled': {
      const { direction, carrier, rules } = note
      return { kind: 'decision', at, what, detail: { direction, carrier, rules } }
    }
    case 'redirected': {
      const { carrier, gateways, passedOver } = note
      return { kind: 'decision', at, what, detail: { carrier, gateways, passedOver } }
    }
    case 'verified': {
      const { verification, attestation, why } = note
      return { kind: 'decision', at, what, detail: { verification, attestation, why } }
    }
    case 'signed': {
      const { carrier, attestation, why } = note
      return { kind: 'decision', at, what, detail: { carrier, attestation, why } }
    }
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
 * The cost of the expected call by each carrier of a least-cost route, in their order. Null: not
 * known.
 */
const pricesOf = (candidates: readonly CallDestination[]) =>
  candidates.flatMap((candidate) => {
    if (candidate.kind !== 'gateway' || candidate.price === undefined) return []
    const { carrierName: carrier, price } = candidate
    return [{ carrier, price: price && moneyToDecimal(price.expectedMicros) }]
  })

const readAttempt = (attempt: Attempt): TraceEntry => {
  const { endedAt: at, destination, status, reason, presented } = attempt
  const detail = { destination, status, reason, ...(presented && { presented }) }
  return { kind: 'decision', at, what: 'tried', detail }
}

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

/**
 * A digest response can be guessed at, an SDES key opens the media, and the headers between us and
 * an application prove who it is.
 */
const withoutSecrets = (text: string): string =>
  text
    .replace(/^(x-tollgate-[a-z]+):[^\r\n]*/gim, '$1: (not shown)')
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
function calledIn(invite: string, destinations: readonly CallDestination[]): string | null {
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
