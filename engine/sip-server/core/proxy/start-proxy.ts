/** The `proxy` command of drachtio applications: an unanswered request goes on to other destinations. */
import { parseAppMessage } from '../../message/parse.ts'
import { parseOptionTags } from '../../message/simple-fields.ts'
import { bareUri } from '../../dialog/dialog.ts'
import { defaultPort } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import { parseUri } from '../../message/uri.ts'
import type { ProxyCommand } from '../../wire/command.ts'
import { encodeNok, encodeProxied, encodeProxyDone } from '../../wire/event.ts'
import { hopOf } from '../next-hop.ts'
import type { Stack } from '../stack.ts'
import { answer } from '../uas/send-response.ts'
import { addedHeaders } from './forwarded-text.ts'
import { MAX_TARGETS } from './redirections.ts'
import { type Report, ResponseContext } from './response-context.ts'
import type { Target } from './target.ts'

const DEFAULT_HOPS = 70

export function startProxy(
  stack: Stack,
  clientId: number,
  id: string,
  command: ProxyCommand,
  now: number,
): void {
  const refuse = (reason: string): void =>
    stack.deliver(clientId, encodeNok(stack.nextId(), id, reason))
  const inbound = stack.inbound.get(command.transactionId)
  if (inbound === undefined || inbound.clientId !== clientId || inbound.dialog !== undefined)
    return refuse(`Unknown transaction id: ${command.transactionId}`)
  const { request } = inbound

  const objection = objectionTo(request)
  if (objection !== undefined) {
    const { status, reason, lines } = objection
    answer(stack, inbound, status, reason, lines, now)
    return refuse(`Rejected with ${status} ${reason}`)
  }
  const { destinations } = command
  const unusable = destinations.find((destination) => hopOf(destination) === undefined)
  if (unusable !== undefined || destinations.length > MAX_TARGETS) {
    answer(stack, inbound, 500, 'Server Internal Error', '', now)
    return refuse(
      `error proxying request to ${unusable ?? `more than ${MAX_TARGETS} destinations`}`,
    )
  }
  const added = parseAppMessage(command.message)
  const context = new ResponseContext(stack, inbound, targetsOf(stack, request, destinations), {
    maxForwards: (request.maxForwards ?? DEFAULT_HOPS) - 1,
    staysInDialog: command.remainInDialog,
    added: added === undefined ? [] : addedHeaders(added),
    isParallel: command.simultaneous,
    followsRedirects: command.followRedirects,
    patience: { provisionalMs: command.provisionalTimeoutMs, finalMs: command.finalTimeoutMs },
    ...(command.fullResponse ? { report: reportTo(stack, clientId, id) } : {}),
  })
  context.start(now)
  if (!command.fullResponse) stack.deliver(clientId, encodeProxyDone(stack.nextId(), id))
}

/** RFC 3261 §16.3 steps 3 and 5. */
function objectionTo(request: SipMessage) {
  if (request.maxForwards === 0) return { status: 483, reason: 'Too Many Hops', lines: '' }
  const required = parseOptionTags(request.all('Proxy-Require'))
  if (required.length === 0) return undefined
  const lines = `Unsupported: ${required.join(', ')}\r\n`
  return { status: 420, reason: 'Bad Extension', lines }
}

/**
 * The Request-URI stays what the caller wrote, unless it names this server: then it becomes the
 * destination. A Route that led here is used up (§16.4).
 */
function targetsOf(
  stack: Stack,
  request: SipMessage,
  destinations: readonly string[],
): readonly Target[] {
  const isOurs = namesThisServer(stack, request.uri)
  const [first, ...others] = request.list('Route')
  const isRouteOurs = first !== undefined && namesThisServer(stack, bareUri(first))
  const routes = first === undefined ? [] : isRouteOurs ? others : [first, ...others]
  return destinations.map((destination) => {
    const hop = bareUri(destination)
    return { uri: isOurs ? hop : request.uri, routes, hop }
  })
}

function namesThisServer(stack: Stack, text: string): boolean {
  const uri = parseUri(text)
  if (uri === undefined || uri.scheme === 'tel') return false
  return stack.options.listeners().some((own) => {
    const isHost = uri.host === own.advertisedHost || uri.host === own.address
    const port = uri.port === 0 ? defaultPort(own.protocol) : uri.port
    return isHost && (port === own.port || port === own.advertisedPort)
  })
}

const reportTo = (stack: Stack, clientId: number, id: string): Report => ({
  final: (text, flow, now) =>
    stack.deliver(
      clientId,
      encodeProxied(stack.nextId(), id, stack.networkMeta(text, flow, now), text),
    ),
  done: () => stack.deliver(clientId, encodeProxyDone(stack.nextId(), id)),
})
