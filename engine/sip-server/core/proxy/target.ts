/** One destination of a forwarded request, and the request as it goes there (RFC 3261 §16.6). */
import type { Flow } from '../../flow.ts'
import type { SentRequest } from '../../transaction/sent-request.ts'
import type { InboundRequest } from '../uas/inbound-request.ts'
import { viaOf } from '../compose.ts'
import { isSips } from '../next-hop.ts'
import type { Stack } from '../stack.ts'
import { forwardedRequest } from './forwarded-text.ts'

export interface Target {
  /** Request-URI. */
  readonly uri: string
  /** What is left of the Route. */
  readonly routes: readonly string[]
  /** URI of the next hop. */
  readonly hop: string
  /** The only way there, where it is known. */
  readonly way?: Flow | undefined
}

export interface Forwarding {
  /** What the forwarded request carries. */
  readonly maxForwards: number
  /** Later requests of the dialog come this way too. */
  readonly staysInDialog: boolean
  /** Headers of the application. */
  readonly added: readonly (readonly [string, string])[]
}

export const keyOf = ({ uri, hop }: Target): string => `${uri} ${hop}`

export function composeForward(
  stack: Stack,
  { request, echo, transaction }: InboundRequest,
  target: Target,
  way: Flow,
  { maxForwards, staysInDialog, added }: Forwarding,
): SentRequest {
  const branch = stack.newBranch()
  return forwardedRequest(request, {
    uri: target.uri,
    routes: target.routes,
    via: viaOf(way.listener, branch),
    branch,
    vias: echo.vias,
    maxForwards,
    added,
    ownRoutes: staysInDialog
      ? ownRoutes(
          stack,
          request.callId,
          way,
          transaction.flow,
          isSips(target.routes[0] ?? target.uri),
        )
      : [],
  })
}

/** RFC 5658: one entry for each side, where they differ; the nearest to the destination first. */
function ownRoutes(
  stack: Stack,
  callId: string,
  to: Flow,
  from: Flow,
  isSecure: boolean,
): readonly string[] {
  const near = stack.ownRoutes.entry(to.listener, callId, to.connectionId, isSecure)
  const far = stack.ownRoutes.entry(from.listener, callId, from.connectionId, isSecure)
  return near === far ? [near] : [near, far]
}
