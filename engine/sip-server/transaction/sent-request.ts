/**
 * A request as it went out, with the fields that a transaction needs again: RFC 3261 §17.1.1.3
 * (ACK of a failure) and §9.1 (CANCEL) copy them.
 */
export interface SentRequest {
  readonly method: string
  readonly uri: string
  /** Value of the top (our) Via. */
  readonly via: string
  readonly branch: string
  readonly routes: readonly string[]
  readonly maxForwards: string
  readonly from: string
  readonly to: string
  readonly callId: string
  readonly cseq: number
  /** Authorization and Proxy-Authorization, as whole lines: an ACK repeats them (§22.1). */
  readonly credentials: string
  /** The whole message. */
  readonly text: string
}

/** RFC 3261 §17.1.1.3: same branch, Route and URI as the INVITE; To of the response. */
export const ackOfFailure = (invite: SentRequest, to: string): string =>
  sameHop(invite, 'ACK', to, invite.credentials)

/** RFC 3261 §9.1. `extra` holds whole header lines such as Reason. */
export const cancelOf = (invite: SentRequest, extra: string): string =>
  sameHop(invite, 'CANCEL', invite.to, extra)

function sameHop(invite: SentRequest, method: string, to: string, extra: string): string {
  const routes = invite.routes.map((route) => `Route: ${route}\r\n`).join('')
  return (
    `${method} ${invite.uri} SIP/2.0\r\nVia: ${invite.via}\r\n${routes}` +
    `Max-Forwards: ${invite.maxForwards}\r\nFrom: ${invite.from}\r\nTo: ${to}\r\n` +
    `Call-ID: ${invite.callId}\r\nCSeq: ${invite.cseq} ${method}\r\n${extra}Content-Length: 0\r\n\r\n`
  )
}
