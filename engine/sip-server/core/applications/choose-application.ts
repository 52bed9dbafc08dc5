/** Which application gets a new request. */
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import type { NewRequest } from '../../options.ts'
import type { Stack } from '../stack.ts'

export type Chosen =
  | { readonly kind: 'application'; readonly clientId: number }
  /** Nobody asked for the method. */
  | { readonly kind: 'nobody' }
  /** It was meant for certain ones, and none of them is there. */
  | { readonly kind: 'away' }

/** In turn among those that asked for the method, unless the server's owner wants it otherwise. */
export function chooseApplication(stack: Stack, request: SipMessage, flow: Flow): Chosen {
  const { applications, options } = stack
  const route = options.routeRequest?.(asSeen(request, flow))
  if (route !== undefined && 'uri' in route) {
    const clientId = applications.summon()
    stack.push({ kind: 'summon', clientId, uri: route.uri })
    return { kind: 'application', clientId }
  }
  const clientId = applications.next(request.method, route?.tag)
  if (clientId !== undefined) return { kind: 'application', clientId }
  return { kind: route === undefined ? 'nobody' : 'away' }
}

const asSeen = (request: SipMessage, { listener, address, port }: Flow): NewRequest => ({
  method: request.method,
  uri: request.uri,
  protocol: listener.protocol,
  sourceAddress: address,
  sourcePort: port,
  get: (name) => request.get(name),
})
