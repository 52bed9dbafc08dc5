/** What a drachtio application may ask. On the wire a field is a position; that ends here. */

/** A request or a response that the application wants sent. */
export interface SipCommand {
  readonly kind: 'sip'
  /** Quoted to answer a request, or to cancel an INVITE; else empty. */
  readonly transactionId: string
  /** The dialog that the request belongs to; empty outside dialogs. */
  readonly dialogId: string
  /** Next hop of a request outside dialogs; empty: the request URI decides. */
  readonly routeUrl: string
  /** The SIP message as the application wrote it: few headers, lower-case names. */
  readonly message: string
}

/** Hand a received request on to other destinations, as a proxy. */
export interface ProxyCommand {
  readonly kind: 'proxy'
  readonly transactionId: string
  readonly remainInDialog: boolean
  /** Report each final response before the closing `done`. */
  readonly fullResponse: boolean
  readonly followRedirects: boolean
  readonly simultaneous: boolean
  /** Milliseconds; absent when the application gave none, or none that can be read. */
  readonly provisionalTimeoutMs: number | undefined
  readonly finalTimeoutMs: number | undefined
  /** At least one. */
  readonly destinations: readonly string[]
  /** Carries the headers to add; its URI and body mean nothing. */
  readonly message: string
}

type Command =
  | { readonly kind: 'authenticate'; readonly secret: string; readonly tags: readonly string[] }
  /** `verb` is a SIP method in lower case, or `cdr:attempt`, `cdr:start`, `cdr:stop`. */
  | { readonly kind: 'route'; readonly verb: string }
  | { readonly kind: 'remove-route'; readonly verb: string }
  | { readonly kind: 'ping' }
  | SipCommand
  | ProxyCommand

/** `id` is what the answer must quote; empty when the payload had none. */
export type ClientMessage =
  | { readonly id: string; readonly command: Command }
  | { readonly id: string; readonly command: undefined; readonly problem: string }

/** Reads one wire payload from an application. A payload that cannot be read is a value with its reason. */
export function decodeCommand(payload: string): ClientMessage {
  const endOfLeader = payload.indexOf('\r\n')
  const leader = endOfLeader === -1 ? payload : payload.slice(0, endOfLeader)
  const message = endOfLeader === -1 ? '' : payload.slice(endOfLeader + 2)
  const tokens = leader.split('|')
  const [id = '', type, first = '', second = '', third = ''] = tokens
  switch (type) {
    case 'sip':
      if (tokens.length < 4) return unreadable(id, 'sip needs a transaction id and a dialog id')
      if (message === '') return unreadable(id, 'sip needs a message')
      return {
        id,
        command: {
          kind: 'sip',
          transactionId: first,
          dialogId: second,
          routeUrl: third,
          message,
        },
      }
    case 'ping':
      return { id, command: { kind: 'ping' } }
    case 'route':
      return verbCommand(id, 'route', first)
    case 'remove_route':
      return verbCommand(id, 'remove-route', first)
    case 'authenticate':
      return { id, command: { kind: 'authenticate', secret: first, tags: splitTags(second) } }
    case 'proxy':
      return decodeProxy(id, tokens, message)
    case undefined:
      return unreadable(id, 'a message type is missing')
    default:
      return unreadable(id, 'unknown message type')
  }
}

const unreadable = (id: string, problem: string): ClientMessage => ({
  id,
  command: undefined,
  problem,
})

function verbCommand(id: string, kind: 'route' | 'remove-route', verb: string): ClientMessage {
  if (verb === '') return unreadable(id, 'a verb is missing')
  return { id, command: { kind, verb: verb.toLowerCase() } }
}

const splitTags = (tags: string): readonly string[] => (tags === '' ? [] : tags.split(','))

function decodeProxy(id: string, tokens: readonly string[], message: string): ClientMessage {
  const [, , transactionId = '', remain, full, redirects, order, provisional = '', final = ''] =
    tokens
  const destinations = tokens.slice(9).filter((destination) => destination !== '')
  if (transactionId === '') return unreadable(id, 'proxy needs a transaction id')
  if (destinations.length === 0) return unreadable(id, 'proxy needs a destination')
  return {
    id,
    command: {
      kind: 'proxy',
      transactionId,
      remainInDialog: remain === 'remainInDialog',
      fullResponse: full === 'fullResponse',
      followRedirects: redirects === 'followRedirects',
      simultaneous: order === 'simultaneous',
      provisionalTimeoutMs: parseTimeout(provisional),
      finalTimeoutMs: parseTimeout(final),
      destinations,
      message,
    },
  }
}

/** `500ms` or `2s`, in milliseconds. */
function parseTimeout(text: string): number | undefined {
  const parts = /^(\d{1,9})(ms|s)$/.exec(text)
  if (parts === null) return undefined
  return Number(parts[1]) * (parts[2] === 's' ? 1_000 : 1)
}
