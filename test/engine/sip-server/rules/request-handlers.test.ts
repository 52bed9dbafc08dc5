/** HTTP servers that say what becomes of new requests, with a real one. */
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { NewRequest } from '../../../../engine/sip-server/options.ts'
import {
  questionUrl,
  requestHandlers,
  routeOf,
  type HttpRequestHandler,
} from '../../../../engine/sip-server/rules/request-handlers.ts'
import { emitted } from '../../../support/waiting.ts'

const headers: Record<string, string> = {
  From: '"A" <sip:alice@a.example>;tag=1',
  To: '<sip:bob@b.example>',
  'Content-Type': 'application/sdp',
}
const request: NewRequest = {
  method: 'INVITE',
  uri: 'sip:bob@b.example;x=1',
  protocol: 'udp',
  text: 'INVITE whole',
  sourceAddress: '192.0.2.1',
  sourcePort: 5_060,
  get: (name) => headers[name],
}

test('the question has what drachtio-server asks with', () => {
  const query =
    'method=INVITE&domain=b.example&protocol=udp&source_address=192.0.2.1&fromUser=alice&toUser=bob' +
    '&uriUser=bob&contentType=application%2Fsdp&uri=sip%3Abob%40b.example%3Bx%3D1&x=1'
  expect(questionUrl('http://h:1', request)).toBe(`http://h:1/?${query}`)
  expect(questionUrl('http://h:1/calls/', request)).toBe(`http://h:1/calls/?${query}`)
  expect(questionUrl('http://h:1/?key=k', request)).toBe(`http://h:1/?key=k&${query}`)
})

test.each([
  'source_address=10.0.0.1',
  'fromUser=admin',
  'FROMUSER=admin',
  'source.address=10.0.0.1',
  'source_address[]=10.0.0.1',
  'protocol=tls',
  'uri=sip:other',
  'key=other',
])('a parameter %s of the Request-URI stands for nothing that the handler is told', (param) => {
  const url = 'http://h:1/?key=k'
  const told = questionUrl(url, { ...request, uri: `sip:bob@b.example;${param};x=1` })
  const names = [...new URL(told).searchParams.keys()]
  expect(names).toEqual([...new URL(questionUrl(url, request)).searchParams.keys()])
})

const proxied = {
  remainInDialog: false,
  followRedirects: true,
  simultaneous: false,
  provisionalTimeoutMs: 5_000,
  finalTimeoutMs: 60_000,
}

test.each([
  ['reject', { status: 486 }, { reject: { status: 486 } }],
  ['reject', { status: 486, reason: 'Later' }, { reject: { status: 486, reason: 'Later' } }],
  ['reject', { status: 99 }, undefined],
  ['reject', { status: '486' }, undefined],
  ['reject', { status: 486, reason: 'a\r\nX: y' }, { reject: { status: 486 } }],
  ['redirect', { contact: 'sip:a' }, { redirect: ['sip:a'] }],
  ['redirect', { contact: ['sip:a', 'sip:b'] }, { redirect: ['sip:a', 'sip:b'] }],
  ['redirect', { contact: ['sip:a\r\nX: y'] }, undefined],
  ['redirect', {}, undefined],
  ['route', { uri: 'tcp://10.0.0.1:81' }, { uri: 'tcp://10.0.0.1:81' }],
  ['route', { uri: '10.0.0.1:81;transport=tls' }, { uri: '10.0.0.1:81;transport=tls' }],
  ['route', { uri: '10.0.0.1' }, undefined],
  ['route', { tag: 'blue' }, { tag: 'blue' }],
  ['route', {}, undefined],
  ['proxy', { destination: 'sip:a' }, { proxy: { ...proxied, destinations: ['sip:a'] } }],
  ['proxy', {}, undefined],
  ['answer', {}, undefined],
])('the answer %s with %j means %j', (action, data, route) => {
  expect(routeOf(JSON.stringify({ action, data }))).toEqual(route)
})

test('what no request can be routed by means nothing', () => {
  for (const text of ['OK', '[]', '{"action":"route"}']) expect(routeOf(text)).toBeUndefined()
})

test('the answer proxy may say how', () => {
  const timeouts = { provisionalTimeout: '500ms', finalTimeout: '20s' }
  const how = { recordRoute: true, followRedirects: false, simultaneous: true, ...timeouts }
  const data = { destination: ['sip:a', 'sip:b'], ...how }
  expect(routeOf(JSON.stringify({ action: 'proxy', data }))).toEqual({
    proxy: {
      destinations: ['sip:a', 'sip:b'],
      remainInDialog: true,
      followRedirects: false,
      simultaneous: true,
      provisionalTimeoutMs: 500,
      finalTimeoutMs: 20_000,
    },
  })
})

interface Asked {
  readonly method: string | undefined
  readonly type: string | undefined
  readonly body: string
}

type AnswerTo = (asked: IncomingMessage, response: ServerResponse) => string | undefined

async function start(answer: AnswerTo) {
  const asked: Asked[] = []
  const listener: RequestListener = (question, response) => {
    let body = ''
    question.on('data', (chunk: Buffer) => (body += chunk.toString()))
    question.on('end', () => {
      asked.push({ method: question.method, type: question.headers['content-type'], body })
      const text = answer(question, response)
      if (text !== undefined) response.end(text)
    })
  }
  const http = createServer(listener)
  http.listen(0, '127.0.0.1')
  await emitted(http, 'listening')
  onTestFinished(() => void http.close())
  const { port } = http.address() as AddressInfo
  return { asked, port, url: `http://127.0.0.1:${port}` }
}

function handle(...handlers: Partial<HttpRequestHandler>[]) {
  const log: unknown[] = []
  const made = requestHandlers(
    handlers.map((each) => ({
      sipMethod: '*',
      httpMethod: 'get',
      url: '',
      verifies: true,
      ...each,
    })),
    (_level, message, fields) => log.push([message, fields?.['reason']]),
  )
  if (made === undefined) throw new Error('no handlers')
  onTestFinished(() => made.stop())
  return { route: made.route, stop: made.stop, log }
}

const reject = '{"action":"reject","data":{"status":486}}'

test('each method asks its own handler, with GET or with the request in a POST', async () => {
  const [get, post] = [await start(() => reject), await start(() => reject)]
  const { route } = handle(
    { sipMethod: 'REGISTER', httpMethod: 'post', url: post.url },
    { url: get.url },
  )
  expect(await route(request)).toEqual({ reject: { status: 486, reason: undefined } })
  await route({ ...request, method: 'REGISTER' })
  expect(get.asked).toEqual([{ method: 'GET', type: undefined, body: '' }])
  expect(post.asked).toEqual([
    { method: 'POST', type: 'text/plain; charset=UTF-8', body: 'INVITE whole' },
  ])
})

test.each([
  ['nonsense', 'no such answer'],
  ['x'.repeat(70_000), 'the answer is too long'],
])('a bad answer is 500, and said', async (text, reason) => {
  const { url } = await start(() => text)
  const { route, log } = handle({ url })
  expect(await route(request)).toEqual({ reject: { status: 500 } })
  expect(log).toEqual([['a request handler has failed', reason]])
})

test('a handler that says nothing is 500 after three seconds', async () => {
  const { url, asked } = await start(() => undefined)
  const { route } = handle({ url })
  const time = new AbortController()
  const timeout = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(time.signal)
  onTestFinished(() => timeout.mockRestore())
  const answer = route(request)
  await expect.poll(() => asked.length).toBe(1)
  expect(timeout).toHaveBeenCalledWith(3_000)
  time.abort()
  expect(await answer).toEqual({ reject: { status: 500 } })
})

test('beyond two thousand questions the answer is 503 at once', async () => {
  const { url } = await start(() => undefined)
  const { route, stop } = handle({ url })
  const first = Array.from({ length: 2_000 }, () => route(request))
  expect(route(request)).toEqual({ reject: { status: 503 } })
  stop()
  for (const answer of first) expect(await answer).toEqual({ reject: { status: 500 } })
})

const rejected = { reject: { status: 486, reason: undefined } }

/** Sends every question on to `location`. */
const movedTo =
  (status: number, location: string): AnswerTo =>
  (_asked, response) => {
    response.writeHead(status, { Location: location })
    return 'moved'
  }

test.each([
  [302, { method: 'GET', type: undefined, body: '' }],
  [307, { method: 'POST', type: 'text/plain; charset=UTF-8', body: 'INVITE whole' }],
])('a redirection with %i is followed, with the question that it asks for', async (status, got) => {
  const last = await start(() => reject)
  const first = await start(movedTo(status, `${last.url}/there`))
  const { route } = handle({ url: first.url, httpMethod: 'post' })
  expect(await route(request)).toEqual(rejected)
  expect(last.asked).toEqual([got])
})

test.each([
  ['/again', 'too many redirections'],
  ['http://[', 'a redirection to no URL'],
  ['file:///etc/passwd', 'a redirection to no URL of http or https'],
])('a redirection to %s is 500', async (location, reason) => {
  const { url, asked } = await start(movedTo(302, location))
  const { route, log } = handle({ url })
  expect(await route(request)).toEqual({ reject: { status: 500 } })
  expect(log).toEqual([['a request handler has failed', reason]])
  expect(asked.length).toBeLessThan(7)
})

test('the user and password of a URL are Basic authentication, for its own server alone', async () => {
  const credentials: (string | undefined)[] = []
  const keep = ({ headers: { authorization } }: IncomingMessage) => credentials.push(authorization)
  const elsewhere = await start((asked) => {
    keep(asked)
    return reject
  })
  const first = await start((asked, response) => {
    keep(asked)
    const location = asked.url === '/again' ? elsewhere.url : '/again'
    return movedTo(302, location)(asked, response)
  })
  const { route } = handle({ url: `http://sbc:p%40ss@127.0.0.1:${first.port}` })
  expect(await route(request)).toEqual(rejected)
  const basic = `Basic ${Buffer.from('sbc:p@ss').toString('base64')}`
  expect(credentials).toEqual([basic, basic, undefined])
})

test('a password in a URL does not get into the log', async () => {
  const lines: unknown[] = []
  const handler: HttpRequestHandler = {
    sipMethod: '*',
    httpMethod: 'get',
    verifies: true,
    url: 'http://sbc:hidden@127.0.0.1:1/calls?key=hidden',
  }
  const handlers = requestHandlers([handler], (...line) => lines.push(line))
  expect(await handlers?.route(request)).toEqual({ reject: { status: 500 } })
  expect(JSON.stringify(lines)).toContain('http://127.0.0.1:1/calls')
  expect(JSON.stringify(lines)).not.toContain('hidden')
})

test('a kept connection that has ended meanwhile is no failure: the question is asked once more', async () => {
  let answered = 0
  const { url, asked } = await start(({ socket }) => {
    answered += 1
    if (answered !== 2) return reject
    socket.destroy()
    return undefined
  })
  const { route, log } = handle({ url })
  expect(await route(request)).toEqual(rejected)
  expect(await route(request)).toEqual(rejected)
  expect({ log, asked: asked.length }).toEqual({ log: [], asked: 3 })
})
