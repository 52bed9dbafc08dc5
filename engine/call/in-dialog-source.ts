/**
 * Checks requests in a call that do not come from the address of their party (RFC 3261 §22,
 * §26.1.4): whoever has read Call-ID and tags could have sent them. They are admitted from another
 * address of the same party, or with the password of the phone. All others are refused.
 */
import type { PhoneAnswer, Registrar } from '../registrar/registrar.ts'
import type { Origin } from '../routing/recognition.ts'
import type { Routing } from '../routing/routing.ts'
import type { ActiveCalls } from './active-calls.ts'
import type { LiveCall, Side } from './call-machine/state.ts'
import { identityOf } from './transfer/identity.ts'

/** The request as the SIP server passes it. */
interface InDialogRequest {
  readonly method: string
  readonly protocol: string
  readonly sourceAddress: string
  readonly sourcePort: number
  /** `name` is the canonical name of the header. */
  get(name: string): string | undefined
}

/** The dialog, and the address from which the peer has sent so far. */
interface DialogOfPeer {
  readonly callId: string
  readonly localTag: string
  readonly remoteTag: string
  readonly address: string
  readonly port: number
}

interface Refusal {
  readonly status: number
  readonly reason: string
  /** Whole header lines. */
  readonly lines?: string
}

export interface InDialogDeps {
  readonly calls: Pick<ActiveCalls, 'partyIn'>
  readonly routing: Pick<Routing, 'recognize' | 'hasGatewayAt'>
  readonly registrar: Pick<Registrar, 'extensionAt' | 'challengeInCall'>
  /** Whether this is the address of another instance of the installation. */
  readonly isInstance: (address: string) => boolean
  readonly onRefused: (request: InDialogRequest, callUuid: string | undefined) => void
}

/** Undefined: the request is admitted. */
export function refusalInDialog(
  request: InDialogRequest,
  dialog: DialogOfPeer,
  deps: InDialogDeps,
): Refusal | undefined {
  const { sourceAddress: address, sourcePort: port } = request
  const sender = deps.routing.recognize({ address, port })
  if (deps.isInstance(address)) return undefined
  const known = deps.routing.recognize({ address: dialog.address, port: dialog.port })
  if (isSameParty(sender, known)) return undefined
  const party = deps.calls.partyIn(dialog)
  if (party && isCalledParty(party, sender, address, deps)) return undefined
  const origin = party && identityOf(party.call, party.side, deps)?.origin
  const phone = origin?.kind === 'extension' ? origin : undefined
  if (phone && sender.kind === 'proxy' && sender.tenantIds.includes(phone.tenantId))
    return undefined
  const answer = phone && deps.registrar.challengeInCall(phoneRequest(request), phone)
  if (phone && answer === undefined) return undefined
  if (answer) return { ...answer, lines: linesOf(answer) }
  deps.onRefused(request, party?.call.start.callUuid)
  return forbidden
}

const linesOf = ({ headers }: PhoneAnswer): string =>
  Object.entries(headers)
    .flatMap(([name, value]) => [value].flat().map((each) => `${name}: ${each}\r\n`))
    .join('')

const forbidden: Refusal = { status: 403, reason: 'Forbidden' }

function isSameParty(one: Origin, other: Origin): boolean {
  if (one.kind === 'trusted') return other.kind === 'trusted'
  if (one.kind === 'carrier') return other.kind === 'carrier' && one.carrierId === other.carrierId
  if (one.kind === 'node') return other.kind === 'node' && one.setId === other.setId
  if (one.kind !== 'proxy' || other.kind !== 'proxy') return false
  return one.tenantIds.some((tenantId) => other.tenantIds.includes(tenantId))
}

/**
 * The carrier or the set that was called may answer from an address that it takes no calls from.
 */
function isCalledParty(
  { call, side }: { readonly call: LiveCall; readonly side: Side },
  sender: Origin,
  address: string,
  { routing }: InDialogDeps,
): boolean {
  if (side === 'caller') return false
  const { carrierId, setId } = call.place
  if (carrierId !== null && routing.hasGatewayAt(carrierId, address)) return true
  return sender.kind === 'node' && sender.setId === setId
}

const phoneRequest = ({ method, protocol, sourceAddress, sourcePort, get }: InDialogRequest) => ({
  method,
  headers: {
    'proxy-authorization': get('Proxy-Authorization') ?? get('Authorization'),
    'user-agent': get('User-Agent'),
  },
  source: { protocol, address: sourceAddress, port: sourcePort },
})
