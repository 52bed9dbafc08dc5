/** The text of the requests that leave: RFC 3261 §8.1.1 outside dialogs, §12.2.1.1 inside. */
import { isIP } from 'node:net'
import { type Dialog, routeBy } from '../dialog/dialog.ts'
import { isWebSocket, type Flow, type HopQuestion, type Listener } from '../flow.ts'
import type { SipMessage } from '../message/message.ts'
import { parseUri } from '../message/uri.ts'
import type { SentRequest } from '../transaction/sent-request.ts'
import {
  asNameAddr,
  contentLengthLine,
  contentTypeLine,
  resolveLocalhost,
  sortAppHeaders,
  tagOf,
  type AppHeaders,
} from './app-headers.ts'
import {
  advertised,
  chooseListener,
  flowTo,
  hopOf,
  isOwnAddress,
  isSips,
  ownUri,
  questionOf,
  transportParam,
  type Hop,
} from './next-hop.ts'
import { secondsIn, sessionFor } from './session/terms.ts'
import type { Stack } from './stack.ts'

export interface Composed {
  readonly sent: SentRequest
  /** Our Contact, '' where the method has none. */
  readonly contact: string
  readonly body: string
  /** Where it goes; while there is a `question`, only the listener that it would leave by. */
  readonly flow: Flow
  readonly question: HopQuestion | undefined
  /** The URI or Route that named the next hop; '' where a connection did, and no other way will do. */
  readonly target: string
  /** Of the session timer that it asks for (RFC 4028 §7.1). */
  readonly sessionSeconds: number | undefined
}

/** Where a request goes, before it is written. */
type Way = Pick<Composed, 'flow' | 'question' | 'target'>

interface Problem {
  readonly problem: string
}

const MAX_FORWARDS = '70'

export function composeOutOfDialog(
  stack: Stack,
  command: { readonly routeUrl: string },
  message: SipMessage,
): Composed | Problem {
  const routes = remainingRoutes(stack, message)
  const [route] = routes
  const target = command.routeUrl !== '' ? command.routeUrl : (route ?? message.uri)
  const registered =
    command.routeUrl === '' && route === undefined
      ? stack.registrationFlows.find(message.uri)
      : undefined
  const way = registered ? byConnection(registered) : wayTo(stack, target)
  if ('problem' in way) return way
  const { listener } = way.flow
  const localhost = advertised(listener)
  const headers = sortAppHeaders(message, localhost)
  const { body } = message
  const contentType = contentTypeLine(headers, body)
  if (contentType === undefined) return { problem: 'missing content-type' }
  const uri = requestUri(message.uri, localhost)
  const from = withTag(stack, headers.from ?? `<sip:${localhost}${transportParam(listener)}>`)
  const isSecure = isSips(uri) || isSips(route)
  const contact = contactFor(message.method, headers, from, { listener, isSecure })
  const routed = command.routeUrl === '' ? routeBy(routes, uri) : { uri, routes }
  const sent = compose({
    method: message.method,
    uri: routed.uri,
    listener,
    branch: stack.newBranch(),
    routes: routed.routes,
    maxForwards: headers.maxForwards ?? MAX_FORWARDS,
    from,
    to: asNameAddr(headers.to ?? withoutParameters(uri)),
    callId: headers.callId ?? stack.options.token(),
    cseq: headers.cseq ?? 1,
    lines: contactLine(contact) + headers.lines + contentType,
    credentials: headers.credentials,
    body,
  })
  return { sent, contact, body, ...way, sessionSeconds: secondsIn(headers.sessionExpires) }
}

export function composeInDialog(
  stack: Stack,
  dialog: Dialog,
  message: SipMessage,
): Composed | Problem {
  const way = wayInDialog(stack, dialog)
  if ('problem' in way) return way
  const { listener } = way.flow
  const headers = sortAppHeaders(message, advertised(listener))
  const contentType = contentTypeLine(headers, message.body)
  if (contentType === undefined) return { problem: 'missing content-type' }
  dialog.localCseq += 1
  if (message.method === 'INVITE' && headers.contact !== undefined) dialog.contact = headers.contact
  const contact = isTargetRefresh(message.method) ? dialog.contact : ''
  const { body } = message
  const session = sessionFor(
    dialog,
    message.method,
    headers.sessionExpires,
    stack.options.minSessionSeconds,
  )
  const sent = composeFor(stack, dialog, message.method, dialog.localCseq, way.flow, {
    maxForwards: headers.maxForwards,
    lines: contactLine(contact) + headers.lines + session.lines + contentType,
    credentials: headers.credentials,
    body,
  })
  return { sent, contact, body, ...way, sessionSeconds: session.seconds }
}

/** A request in a dialog, an application's or our own: all but number and lines comes from the dialog. */
export function composeFor(
  stack: Stack,
  dialog: Dialog,
  method: string,
  cseq: number,
  flow: Flow,
  rest: {
    readonly maxForwards?: string | undefined
    readonly lines: string
    readonly credentials?: string
    readonly body: string
  },
): SentRequest {
  const { uri, routes } = dialog.nextRequestRoute()
  return compose({
    method,
    uri,
    listener: flow.listener,
    branch: stack.newBranch(),
    routes,
    maxForwards: rest.maxForwards ?? MAX_FORWARDS,
    from: dialog.local,
    to: dialog.remote,
    callId: dialog.callId,
    cseq,
    lines: rest.lines,
    credentials: rest.credentials ?? '',
    body: rest.body,
  })
}

/** By the dialog's flow where it is bound to one, else by route set or remote target. */
function wayInDialog(stack: Stack, dialog: Dialog): Way | Problem {
  if (dialog.isFlowBound) return byConnection(dialog.flow)
  const { uri, routes, hop: target } = dialog.nextRequestRoute()
  // The peer may have come back over another connection than the one that was lost.
  const registered = routes.length === 0 ? stack.registrationFlows.find(uri) : undefined
  if (registered) return byConnection(registered)
  // A WebSocket that is gone cannot be opened from here: what is sent fails at once.
  if (isWebSocket(dialog.flow.listener.protocol)) return byConnection(dialog.flow)
  if (dialog.way) return { flow: dialog.way, question: undefined, target }
  const way = underKnownName(wayTo(stack, target, dialog.flow.listener), dialog.flow)
  if ('flow' in way && way.question === undefined) dialog.way = way.flow
  return way
}

/** Where what cannot wait for a look-up goes: if it must be one, the way that the dialog came by. */
export function flowInDialog(stack: Stack, dialog: Dialog): Flow {
  const way = wayInDialog(stack, dialog)
  return 'problem' in way || way.question !== undefined ? dialog.flow : way.flow
}

/**
 * A peer that was called by name shows an address in its Contact, for which it has no certificate:
 * it is the same peer under the name that it has proved before.
 */
function underKnownName(way: Way | Problem, { address, hostName }: Flow): Way | Problem {
  if (hostName === undefined || !('flow' in way) || way.flow.address !== address) return way
  return { ...way, flow: { ...way.flow, hostName } }
}

const byConnection = (flow: Flow): Way => ({ flow, question: undefined, target: '' })

const noRoutes: readonly string[] = []

/**
 * A B2BUA may have copied the Route of its caller. What led the caller to this server is used up
 * (RFC 3261 §16.4); drachtio-server drops every Route, but a Path of a registration has to stay.
 */
function remainingRoutes(stack: Stack, message: SipMessage): readonly string[] {
  if (!message.has('Route')) return noRoutes
  const listeners = stack.options.listeners()
  const routes = message.list('Route')
  const next = routes.findIndex((route) => {
    const hop = hopOf(route)
    return hop === undefined || !isOwnAddress(listeners, hop.host, hop.port, hop.protocol)
  })
  return next === -1 ? noRoutes : routes.slice(next)
}

/** By what the URI says alone; of several listeners that serve it, `preferred`. */
export function wayTo(stack: Stack, target: string, preferred?: Listener): Way | Problem {
  const listeners = stack.options.listeners()
  const hop = hopOf(target)
  if (hop === undefined) return { problem: `invalid request-uri: ${target}` }
  if (hop.isRegistered) {
    const flow = stack.registrationFlows.from(hop.protocol, hop.host, hop.port)
    return flow ? byConnection(flow) : { problem: 'the connection of the registration is closed' }
  }
  const listener = listenerFor(listeners, hop, preferred)
  if (listener === undefined) return { problem: 'requested protocol/transport not available' }
  if (isOwnAddress(listeners, hop.host, hop.port, listener.protocol))
    return { problem: 'can not send request to myself' }
  const question = questionOf(hop, listener.protocol, listeners)
  return { flow: flowTo(listener, hop.host, hop.port), question, target }
}

/** Without `transport=` any listener is better than none (wire/README.md §5.1). */
function listenerFor(
  listeners: readonly Listener[],
  hop: Hop,
  preferred: Listener | undefined,
): Listener | undefined {
  const fits =
    preferred?.protocol === hop.protocol && isIP(preferred.address) === (isIP(hop.host) || 4)
  if (fits) return preferred
  const chosen = chooseListener(listeners, hop.protocol, hop.host)
  if (chosen !== undefined || hop.isExplicit) return chosen
  return listeners[0]
}

interface Parts {
  readonly method: string
  readonly uri: string
  readonly listener: Listener
  readonly branch: string
  readonly routes: readonly string[]
  readonly maxForwards: string
  readonly from: string
  readonly to: string
  readonly callId: string
  readonly cseq: number
  readonly lines: string
  readonly credentials: string
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

/** A bare number is one of ours; URI headers and `method` have no place in a Request-URI (§19.1.5). */
function requestUri(uri: string, localhost: string): string {
  if (!/^[a-z][a-z0-9+.-]*:/i.test(uri)) return `sip:${uri}@${localhost}`
  const bare = uri.includes('?') ? uri.slice(0, uri.indexOf('?')) : uri
  const replaced = bare.includes('localhost')
    ? resolveLocalhost(`<${bare}>`, localhost).slice(1, -1)
    : bare
  return replaced.replace(/;method=[^;]*/i, '')
}

/** RFC 3261 §19.1.1: how to get there does not belong in a To. */
function withoutParameters(uri: string): string {
  const parameters = /^sips?:/i.test(uri) ? uri.indexOf(';', uri.indexOf('@') + 1) : -1
  return parameters === -1 ? uri : uri.slice(0, parameters)
}

function withTag(stack: Stack, from: string): string {
  const nameAddr = asNameAddr(from)
  return tagOf(nameAddr) === '' ? `${nameAddr};tag=${stack.options.token()}` : nameAddr
}

/** §8.1.1.8 and §12.2.1.1: what can form a dialog or move its target carries a Contact. */
const isTargetRefresh = (method: string): boolean =>
  method === 'INVITE' ||
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
  if (method !== 'INVITE' && method !== 'SUBSCRIBE') return ''
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
