/** Writes the requests that leave: RFC 3261 §8.1.1 outside dialogs, §12.2.1.1 inside. */
import type { AppMessage } from '../application.ts'
import { type AppHeaders, asNameAddr, contentTypeLine, sortAppHeaders } from './app-headers.ts'
import type { Identifiers } from './identifiers.ts'
import {
  advertised,
  byConnection,
  type HopFinder,
  hopOf,
  isOwnAddress,
  isSips,
  type NextHop,
  ownUri,
  type Problem,
  transportParam,
} from './hop-finder.ts'
import { type Dialog, routeBy, secondsIn, sessionFor } from '../dialog/dialog.ts'
import { type Flow, isInward, isReliable, isWebSocket, type Listener } from '../flow.ts'
import { contentLengthLine } from '../../../schema/sip/message.ts'
import { hostPort, parseUri, tagOf } from '../../../schema/sip/fields.ts'
import type { WayToPeer } from '../options.ts'
import type { SentRequest } from '../transaction/machine.ts'

export interface ComposedRequest extends NextHop {
  readonly sent: SentRequest
  /** Our Contact, '' where the method has none. */
  readonly contact: string
  readonly body: string
  /** Interval of the session timer that it asks for (RFC 4028 §7.1). */
  readonly sessionSeconds: number | undefined
}

interface OwnFields {
  readonly maxForwards?: string | undefined
  readonly lines?: string
  readonly credentials?: string
  readonly body?: string
}

const MAX_FORWARDS = '70'

interface Ways {
  readonly outboundProxy: string | undefined
  /** See `SipServerOptions.mayFollow`. */
  readonly mayFollow: ((way: WayToPeer, clientId: number) => boolean) | undefined
}

export class RequestWriter {
  readonly #hops: HopFinder
  readonly #ids: Identifiers
  readonly #minSessionSeconds: number
  readonly #ways: Ways

  constructor(hops: HopFinder, ids: Identifiers, minSessionSeconds: number, ways: Ways) {
    this.#ways = ways
    this.#hops = hops
    this.#ids = ids
    this.#minSessionSeconds = minSessionSeconds
  }

  /** An application's request outside dialogs. */
  outOfDialog(routeUrl: string, message: AppMessage): ComposedRequest | Problem {
    const routes = this.#remainingRoutes(message)
    const [route] = routes
    const target = routeUrl !== '' ? routeUrl : (route ?? this.#ways.outboundProxy ?? message.uri)
    const registered =
      routeUrl === '' && route === undefined ? this.#hops.registered(message.uri) : undefined
    const hop = registered ?? this.#hops.nextHop(target)
    if ('problem' in hop) return hop
    const { listener } = hop.flow
    const localhost = advertised(listener)
    const headers = sortAppHeaders(message, localhost)
    const { body } = message
    const contentType = contentTypeLine(headers, body)
    if (contentType === undefined) return { problem: 'missing content-type' }
    const uri = requestUri(message.uri, localhost)
    const from = this.#withTag(headers.from ?? `<sip:${localhost}${transportParam(listener)}>`)
    const isSecure = isSips(uri) || isSips(route)
    const contact = contactFor(message.method, headers, from, { listener, isSecure })
    const routed = routeUrl === '' ? routeBy(routes, uri) : { uri, routes }
    const sent = compose({
      method: message.method,
      uri: routed.uri,
      listener,
      branch: this.#ids.branch(),
      routes: routed.routes,
      maxForwards: headers.maxForwards ?? MAX_FORWARDS,
      from,
      to: asNameAddr(headers.to ?? withoutParameters(uri)),
      callId: headers.callId ?? this.#ids.token(),
      cseq: headers.cseq ?? 1,
      lines: contactLine(contact) + headers.lines + contentType,
      credentials: headers.credentials,
      body,
    })
    return { sent, contact, body, ...hop, sessionSeconds: secondsIn(headers.sessionExpires) }
  }

  /** An application's request in a dialog. */
  inDialog(dialog: Dialog, message: AppMessage): ComposedRequest | Problem {
    const hop = this.hopInDialog(dialog)
    if ('problem' in hop) return hop
    const { listener } = hop.flow
    const headers = sortAppHeaders(message, advertised(listener))
    const { method, body } = message
    const contentType = contentTypeLine(headers, body)
    if (contentType === undefined) return { problem: 'missing content-type' }
    const cseq = dialog.nextLocalCseq()
    if (method === 'INVITE' && headers.contact !== undefined) dialog.changeContact(headers.contact)
    const contact = hasContact(method) ? dialog.contact : ''
    const session = sessionFor(dialog, method, headers.sessionExpires, this.#minSessionSeconds)
    const sent = this.numbered(dialog, method, cseq, hop.flow, {
      maxForwards: headers.maxForwards,
      lines: contactLine(contact) + headers.lines + session.lines + contentType,
      credentials: headers.credentials,
      body,
    })
    return { sent, contact, body, ...hop, sessionSeconds: session.seconds }
  }

  /**
   * A request in a dialog by its number, an application's or our own; `rest` is not of the dialog.
   */
  numbered(dialog: Dialog, method: string, cseq: number, flow: Flow, rest: OwnFields): SentRequest {
    const { uri, routes } = dialog.nextRequestRoute()
    return compose({
      method,
      uri,
      listener: flow.listener,
      branch: this.#ids.branch(),
      routes,
      maxForwards: rest.maxForwards ?? MAX_FORWARDS,
      from: dialog.local,
      to: dialog.remote,
      callId: dialog.callId,
      cseq,
      lines: rest.lines ?? '',
      credentials: rest.credentials ?? '',
      body: rest.body ?? '',
    })
  }

  /**
   * The flow of a request that cannot wait for a look-up; if one is needed, the dialog's own flow.
   */
  flowInDialog(dialog: Dialog): Flow {
    const hop = this.hopInDialog(dialog)
    return 'problem' in hop || hop.question !== undefined ? dialog.flow : hop.flow
  }

  /** The flow of the dialog where it is bound to one, else the hop of its route set or target. */
  hopInDialog(dialog: Dialog): NextHop | Problem {
    if (!dialog.isFlowBound) return this.#hopByTarget(dialog)
    // Who is behind a proxy has written the Request-URI by which the proxy goes on.
    if (dialog.hasRoutes) this.#judgeWay(dialog)
    return byConnection(dialog.flow)
  }

  #hopByTarget(dialog: Dialog): NextHop | Problem {
    const { flow, nextHop } = dialog
    const { uri, routes, hop: target } = dialog.nextRequestRoute()
    const { protocol } = flow.listener
    // The peer may have come back over another connection than the one that was lost.
    const isStream = isReliable(protocol)
    const registered =
      isStream && routes.length === 0 ? this.#hops.registered(dialog.namedTarget ?? uri) : undefined
    if (registered) {
      dialog.peerIsBack()
      return registered
    }
    // A WebSocket that is gone cannot be opened from here: what is sent fails at once.
    if (isWebSocket(protocol)) return byConnection(flow)
    if (nextHop) return { flow: nextHop, question: undefined, target }
    const hop = underKnownName(this.#hops.nextHop(target, flow.listener), flow)
    if (routes.length > 0 || !leadsBack(hop, flow)) {
      if (!this.#judgeWay(dialog)) return byConnection(dialog.flow)
      if ('question' in hop && hop.question !== undefined)
        return { ...hop, question: { ...hop.question, peer: flow.address } }
      // Contact and Record-Route of a peer elsewhere give no access to addresses that only this
      // machine may reach.
      if ('flow' in hop && isInward(hop.flow.address, flow.address)) return byConnection(flow)
    }
    if ('flow' in hop && hop.question === undefined) dialog.rememberNextHop(hop.flow)
    return hop
  }

  /**
   * Contact and Record-Route are words of the peer. False: from now on its requests go to where it
   * has sent from.
   */
  #judgeWay(dialog: Dialog): boolean {
    const { mayFollow } = this.#ways
    if (mayFollow === undefined || dialog.isWayJudged) return true
    const { callId, localTag, remoteTag, clientId, flow } = dialog
    const { listener, address, port } = flow
    const { routeSet: routes, remoteTarget: target } = dialog.routeToPeer
    const { protocol } = listener
    const peer = { callId, localTag, remoteTag, address, port, protocol }
    const isAllowed = mayFollow({ ...peer, routes, target }, clientId)
    if (isAllowed) dialog.wayJudged()
    else dialog.returnByFlow(`sip:${hostPort(address, port)}${transportParam(listener)}`)
    return isAllowed
  }

  /**
   * A B2BUA may have copied the Route of its caller. What led the caller to this server is used up
   * (RFC 3261 §16.4); drachtio-server drops every Route, but a Path of a registration has to stay.
   */
  #remainingRoutes(message: AppMessage): readonly string[] {
    if (!message.has('Route')) return noRoutes
    const listeners = this.#hops.listeners()
    const routes = message.list('Route')
    const next = routes.findIndex((route) => {
      const hop = hopOf(route)
      return hop === undefined || !isOwnAddress(listeners, hop.host, hop.port, hop.protocol)
    })
    return next === -1 ? noRoutes : routes.slice(next)
  }

  #withTag(from: string): string {
    const nameAddr = asNameAddr(from)
    return tagOf(nameAddr) === '' ? `${nameAddr};tag=${this.#ids.token()}` : nameAddr
  }
}

const noRoutes: readonly string[] = []

/** Whether requests by this hop arrive where the peer has sent from. */
const leadsBack = (hop: NextHop | Problem, { address, port, listener }: Flow): boolean =>
  'flow' in hop &&
  hop.question === undefined &&
  hop.flow.address === address &&
  hop.flow.port === port &&
  hop.flow.listener.protocol === listener.protocol

/**
 * A peer that was called by name shows an address in its Contact, for which it has no certificate:
 * it is the same peer under the name that it has proved before.
 */
function underKnownName(hop: NextHop | Problem, { address, hostName }: Flow): NextHop | Problem {
  if (hostName === undefined || !('flow' in hop) || hop.flow.address !== address) return hop
  return { ...hop, flow: { ...hop.flow, hostName } }
}

type Parts = Omit<SentRequest, 'via' | 'text'> & {
  readonly listener: Listener
  readonly lines: string
  readonly body: string
}

function compose(parts: Parts): SentRequest {
  const { method, uri, listener, branch, routes, maxForwards, from, to, callId, cseq } = parts
  const via = viaOf(listener, branch)
  let text = `${method} ${uri} SIP/2.0\r\nVia: ${via}\r\nMax-Forwards: ${maxForwards}\r\n`
  for (const route of routes) text += `Route: ${route}\r\n`
  text +=
    `From: ${from}\r\nTo: ${to}\r\nCall-ID: ${callId}\r\nCSeq: ${cseq} ${method}\r\n` +
    parts.lines +
    contentLengthLine(parts.body) +
    parts.body
  const { credentials } = parts
  return {
    method,
    uri,
    via,
    branch,
    routes,
    maxForwards,
    from,
    to,
    callId,
    cseq,
    credentials,
    text,
  }
}

export function viaOf(listener: Listener, branch: string): string {
  // RFC 3581 §3: ask for the answer to come to the port we send from. RFC 5923 §5: requests may
  // come back on a TLS connection.
  const { protocol } = listener
  const rport = protocol === 'udp' ? ';rport' : protocol === 'tls' ? ';alias' : ''
  return `SIP/2.0/${protocol.toUpperCase()} ${advertised(listener)}${rport};branch=${branch}`
}

/**
 * A bare number is a user of this server; URI headers and `method` have no place in a Request-URI
 * (§19.1.5).
 */
function requestUri(uri: string, localhost: string): string {
  if (!/^[a-z][a-z0-9+.-]*:/i.test(uri)) return `sip:${uri}@${localhost}`
  const bare = uri.includes('?') ? uri.slice(0, uri.indexOf('?')) : uri
  return bare.replace(/;method=[^;]*/i, '')
}

/** RFC 3261 §19.1.1: how to get there does not belong in a To. */
function withoutParameters(uri: string): string {
  const parameters = /^sips?:/i.test(uri) ? uri.indexOf(';', uri.indexOf('@') + 1) : -1
  return parameters === -1 ? uri : uri.slice(0, parameters)
}

/**
 * §8.1.1.8 and §12.2.1.1: what can form a dialog or move its target carries a Contact; OPTIONS may
 * (§11.1), and servers exist that answer to the Contact alone.
 */
const hasContact = (method: string): boolean =>
  method === 'INVITE' ||
  method === 'OPTIONS' ||
  method === 'SUBSCRIBE' ||
  method === 'UPDATE' ||
  method === 'REFER' ||
  method === 'NOTIFY'

function contactFor(
  method: string,
  headers: AppHeaders,
  from: string,
  { listener, isSecure }: { readonly listener: Listener; readonly isSecure: boolean },
): string {
  if (headers.contact !== undefined) {
    const contact = withTransport(headers.contact, listener)
    return isSecure ? secured(contact, listener) : contact
  }
  if (method !== 'INVITE' && method !== 'SUBSCRIBE' && method !== 'OPTIONS') return ''
  const user = parseUri(from.slice(from.indexOf('<') + 1, from.indexOf('>')))?.user
  return `<${ownUri(listener, user ?? '', isSecure)}>`
}

/** A Contact that names one of our stream listeners must say so, or the peer would come by UDP. */
function withTransport(contact: string, listener: Listener): string {
  if (listener.protocol === 'udp' || contact.includes('transport=')) return contact
  return contact.replace(advertised(listener), (host) => host + transportParam(listener))
}

/** A Contact that names one of our listeners for TLS, as `sips` (§8.1.1.8). */
const secured = (contact: string, listener: Listener): string =>
  listener.protocol === 'tls' && contact.includes(advertised(listener))
    ? contact.replace(/\bsip:/i, 'sips:').replace(/;transport=tls/i, '')
    : contact

const contactLine = (contact: string): string => (contact === '' ? '' : `Contact: ${contact}\r\n`)

interface RetargetedRequest {
  readonly sent: SentRequest
  readonly contact: string
}

/**
 * The same request for another target: a branch of its own (RFC 3263 §4.3), Via and Contact of the
 * listener that it leaves by. All header values that the application knows stay.
 */
export function retarget(
  { sent, contact }: RetargetedRequest,
  from: Listener,
  to: Listener,
  branch: string,
): RetargetedRequest {
  const via = viaOf(to, branch)
  const { text } = sent
  const start = text.indexOf('\r\nVia: ') + '\r\nVia: '.length
  const moved = text.slice(0, start) + via + text.slice(start + sent.via.length)
  const newContact = from === to ? contact : contactAt(contact, from, to)
  const lineOf = (value: string): string => `\r\nContact: ${value}\r\n`
  const rewritten = moved.replace(lineOf(contact), () => lineOf(newContact))
  return { sent: { ...sent, via, branch, text: rewritten }, contact: newContact }
}

/** A Contact that names one listener, naming another; one of the application's own choice stays. */
function contactAt(contact: string, from: Listener, to: Listener): string {
  const place = advertised(from)
  const at = contact.indexOf(place)
  if (at === -1) return contact
  const rest = contact.slice(at + place.length).replace(/^;transport=\w+/i, '')
  return contact.slice(0, at) + advertised(to) + transportParam(to) + rest
}

// BYEs that the stack sends by itself; the application learns of them as `unsolicited` requests.

/** Its BYE ends no call. */
export const otherBranch = 'Call completed elsewhere'
export const sessionExpired = 'Session timer expired'
