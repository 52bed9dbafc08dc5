/**
 * Request handlers: an HTTP server is asked what becomes of each new request, with GET, or with
 * POST and the request as body. Its answer is JSON: reject, redirect, proxy, or route to an
 * application.
 */
import { Agent as HttpAgent, request as httpRequest } from 'node:http'
import { Agent as HttpsAgent, request as httpsRequest } from 'node:https'
import { isApplicationUri } from '../clients/dialer.ts'
import { errorCode } from '../errors.ts'
import { parseNameAddr, parseUri } from '../../../schema/sip/fields.ts'
import type { ServerLog, NewRequest, ProxyRoute, RequestRoute, RouteAnswer } from '../options.ts'

export interface HttpRequestHandler {
  /** Upper case; `*`: every method that has no handler of its own. */
  readonly sipMethod: string
  readonly httpMethod: 'get' | 'post'
  /** A URL of http or https; one of tcp or tls is the application itself. */
  readonly url: string
  /** Whether the certificate of an https handler counts. */
  readonly verifies: boolean
}

export interface RequestHandlers {
  readonly route: (request: NewRequest) => RouteAnswer
  /** Other handlers take its place: ends when the questions under way are answered. */
  readonly retire: () => void
  /** Gives up the questions under way, and closes connections. */
  readonly stop: () => void
}

/** A caller waits meanwhile; as long as drachtio-server waits. Milliseconds. */
const answerMs = 3_000
/** Questions under way; what comes beyond them gets 503. */
const maxQuestions = 2_000
/** Connections to one handler. */
const maxConnections = 64
const maxAnswerBytes = 65_536
/** Redirections of one question that are followed. */
const maxRedirections = 5

const failed: RequestRoute = { reject: { status: 500 } }
const busy: RequestRoute = { reject: { status: 503 } }

/** Undefined: there are none. */
export function requestHandlers(
  handlers: readonly HttpRequestHandler[],
  log: ServerLog,
): RequestHandlers | undefined {
  if (handlers.length === 0) return undefined
  const agents = new Map(handlers.map((handler) => [handler, agentsFor(handler)]))
  const stopping = new AbortController()
  let questions = 0
  let isRetired = false
  const route = (request: NewRequest): RouteAnswer => {
    const handler = handlerFor(handlers, request.method)
    if (handler === undefined) return undefined
    if (isApplicationUri(handler.url)) return { uri: handler.url }
    if (questions >= maxQuestions) return busy
    questions += 1
    const signal = AbortSignal.any([stopping.signal, AbortSignal.timeout(answerMs)])
    return ask(firstQuestion(handler, request), { agents: agents.get(handler) ?? {}, signal })
      .then(
        (answer) => routeOf(answer) ?? refuse(handler, 'no such answer', answer.slice(0, 200), log),
        (error: unknown) => refuse(handler, errorCode(error), undefined, log),
      )
      .finally(() => {
        questions -= 1
        if (isRetired && questions === 0) stop()
      })
  }
  const stop = (): void => {
    stopping.abort()
    for (const each of agents.values()) for (const agent of Object.values(each)) agent.destroy()
  }
  const retire = (): void => {
    isRetired = true
    if (questions === 0) stop()
  }
  return { route, stop, retire }
}

function refuse(
  { url }: HttpRequestHandler,
  reason: string,
  answer: string | undefined,
  log: ServerLog,
): RequestRoute {
  log('warn', 'a request handler has failed', { url: withoutSecrets(url), reason, answer })
  return failed
}

/** Passwords and keys are no business of the log. */
function withoutSecrets(url: string): string {
  const { origin, pathname } = new URL(url)
  return origin + pathname
}

const handlerFor = (
  handlers: readonly HttpRequestHandler[],
  method: string,
): HttpRequestHandler | undefined =>
  handlers.find(({ sipMethod }) => sipMethod === method) ??
  handlers.find(({ sipMethod }) => sipMethod === '*')

/** One agent for each protocol of a URL: a redirection may lead to the other one. */
type Agents = Readonly<Record<string, HttpAgent>>

function agentsFor({ verifies }: HttpRequestHandler): Agents {
  const limits = { keepAlive: true, maxSockets: maxConnections }
  return {
    'http:': new HttpAgent(limits),
    'https:': new HttpsAgent({ ...limits, rejectUnauthorized: verifies }),
  }
}

interface Question {
  /** Its user and password, if any, are sent as Basic authentication. */
  readonly url: URL
  /** Body of a POST; undefined: it is a GET. */
  readonly body: string | undefined
}

interface Answer {
  readonly status: number
  /** The Location of a redirection. */
  readonly location: string | undefined
  readonly text: string
}

interface How {
  readonly agents: Agents
  readonly signal: AbortSignal
}

const firstQuestion = ({ url, httpMethod }: HttpRequestHandler, request: NewRequest): Question => ({
  url: new URL(questionUrl(url, request)),
  body: httpMethod === 'post' ? request.text : undefined,
})

/**
 * The body of the answer, whatever its status; of a redirection that of the place where it leads.
 */
async function ask(first: Question, how: How): Promise<string> {
  let question = first
  for (let followed = 0; followed <= maxRedirections; followed += 1) {
    const answer = await exchange(question, how)
    const next = redirected(question, answer)
    if (next === undefined) return answer.text
    question = next
  }
  throw new Error('too many redirections')
}

/**
 * 301, 302 and 303 make a GET of a POST, as drachtio-server does; 307 and 308 repeat it (RFC 9110
 * §15.4).
 */
function redirected({ url, body }: Question, { status, location }: Answer): Question | undefined {
  if (location === undefined || ![301, 302, 303, 307, 308].includes(status)) return undefined
  if (!URL.canParse(location, url.href)) throw new Error('a redirection to no URL')
  const target = new URL(location, url)
  if (target.protocol !== 'http:' && target.protocol !== 'https:')
    throw new Error('a redirection to no URL of http or https')
  // Credentials are for the one that they were given for.
  if (target.origin === url.origin && target.username === '')
    [target.username, target.password] = [url.username, url.password]
  return { url: target, body: status < 307 ? undefined : body }
}

/**
 * A kept-alive connection may end while a question is on its way: the question is asked once more.
 */
async function exchange(question: Question, how: How): Promise<Answer> {
  try {
    return await send(question, how)
  } catch (error) {
    if (error instanceof LostConnection) return send(question, how)
    throw error
  }
}

class LostConnection extends Error {
  override readonly name = 'LostConnection'
}

function send({ url, body }: Question, { agents, signal }: How): Promise<Answer> {
  const headers = {
    Accept: 'application/json',
    ...(body !== undefined && {
      'Content-Type': 'text/plain; charset=UTF-8',
      'Content-Length': Buffer.byteLength(body),
    }),
  }
  const request = url.protocol === 'https:' ? httpsRequest : httpRequest
  const agent = agents[url.protocol]
  return new Promise((resolve, reject) => {
    const method = body === undefined ? 'GET' : 'POST'
    const question = request(url, { agent, signal, method, headers }, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (chunk: string) => {
        text += chunk
        if (text.length > maxAnswerBytes) question.destroy(new Error('the answer is too long'))
      })
      const { statusCode: status = 0, headers: answerHeaders } = answer
      answer.on('end', () => resolve({ status, location: answerHeaders.location, text }))
      answer.on('error', reject)
    })
    question.on('error', (error) => {
      const isLost = question.reusedSocket && errorCode(error) === 'ECONNRESET'
      reject(isLost ? new LostConnection(error.message, { cause: error }) : error)
    })
    question.end(body)
  })
}

/**
 * The URL with what is known of the request, under the names of drachtio-server. The caller chooses
 * the parameters of the Request-URI: one with a name that is in use already is left out.
 */
export function questionUrl(url: string, request: NewRequest): string {
  const uri = parseUri(request.uri)
  const userOf = (name: string): string =>
    parseUri(parseNameAddr(request.get(name) ?? '')?.uri ?? '')?.user ?? ''
  const query = new URLSearchParams({
    method: request.method,
    domain: uri?.host ?? '',
    protocol: request.protocol,
    source_address: request.sourceAddress,
    fromUser: userOf('From'),
    toUser: userOf('To'),
    uriUser: uri?.user ?? '',
    contentType: request.get('Content-Type') ?? '',
    uri: request.uri,
  })
  const own = new Set([...new URL(url).searchParams.keys(), ...query.keys()].map(comparable))
  for (const [name, value] of uri?.params ?? [])
    if (!own.has(comparable(name))) query.append(name, value)
  const question = query.toString()
  if (url.includes('?')) return `${url}&${question}`
  return `${url.replace(/\/$/, '')}/?${question}`
}

/**
 * Names that a handler may take for the same one, such as `Source.Address` and `source_address[]`.
 */
const comparable = (name: string): string =>
  name
    .replace(/\[.*/s, '')
    .replaceAll(/[^a-z0-9]/gi, '')
    .toLowerCase()

/** The route that a JSON text names; undefined: it cannot be understood. */
export function routeOf(json: string): RequestRoute | undefined {
  const answer = parsed(json)
  const data = isObject(answer) ? answer['data'] : undefined
  if (!isObject(answer) || !isObject(data)) return undefined
  switch (answer['action']) {
    case 'reject':
      return rejectionIn(data)
    case 'redirect': {
      const redirect = textsIn(data['contact'])
      return redirect && { redirect }
    }
    case 'proxy':
      return proxyIn(data)
    case 'route':
      return applicationIn(data)
    default:
      return undefined
  }
}

type Fields = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

function parsed(json: string): unknown {
  try {
    return JSON.parse(json) as unknown
  } catch {
    return undefined
  }
}

/** Whether a value fits into one line of a SIP message. */
const isLine = (value: unknown): value is string =>
  typeof value === 'string' && value !== '' && !/\p{Cc}/u.test(value)

function textsIn(value: unknown): readonly string[] | undefined {
  const texts: readonly unknown[] = Array.isArray(value) ? value : [value]
  return texts.length > 0 && texts.every(isLine) ? texts : undefined
}

function rejectionIn({ status, reason }: Fields): RequestRoute | undefined {
  if (typeof status !== 'number' || !Number.isInteger(status) || status < 300 || status > 699)
    return undefined
  return { reject: { status, reason: isLine(reason) ? reason : undefined } }
}

function proxyIn(data: Fields): RequestRoute | undefined {
  const destinations = textsIn(data['destination'])
  if (destinations === undefined) return undefined
  const proxy: ProxyRoute = {
    destinations,
    remainInDialog: data['recordRoute'] === true,
    followRedirects: data['followRedirects'] !== false,
    simultaneous: data['simultaneous'] === true,
    provisionalTimeoutMs: durationIn(data['provisionalTimeout']) ?? 5_000,
    finalTimeoutMs: durationIn(data['finalTimeout']) ?? 60_000,
  }
  return { proxy }
}

/** `500ms`, `5s`. */
function durationIn(value: unknown): number | undefined {
  const parts = /^(\d{1,6})(ms|s)$/.exec(typeof value === 'string' ? value : '')
  return parts === null ? undefined : Number(parts[1]) * (parts[2] === 's' ? 1_000 : 1)
}

function applicationIn({ uri, tag }: Fields): RequestRoute | undefined {
  if (isLine(uri)) return isApplicationUri(uri) ? { uri } : undefined
  return isLine(tag) ? { tag } : undefined
}
