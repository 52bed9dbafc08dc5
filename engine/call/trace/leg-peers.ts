/** Who is at the far end of each leg of a traced call, by the INVITE that began the leg. */
import type { LegPeer, TraceMessage } from '../../../schema/contracts/calls.ts'
import { readAddress, readUri } from '../../sip-server/message/index.ts'
import type { Note } from '../call-machine/state.ts'
import type { Destination } from '../inbound/route.ts'

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
  const place = withoutDefaultPort(hostPort)
  const isThere = (other: string): boolean =>
    withoutDefaultPort(readUri(other).hostPort) === place && place !== ''
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
