/** A receiver of routing webhooks on loopback, and webhooks that ask it. */
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import { onTestFinished } from 'vitest'
import {
  RoutingWebhooks,
  type RoutingWebhooksDeps,
} from '../../engine/hooks/webhook/routing-webhooks.ts'
import type { RoutingWebhookRecord } from '../../engine/hooks/webhook/routing-webhook-store.ts'
import type { HookCall } from '../../schema/contracts/hooks.ts'

export interface Question {
  readonly headers: IncomingHttpHeaders
  readonly body: string
  readonly path: string
}

export interface Receiver {
  readonly url: string
  readonly server: Server
  readonly questions: Question[]
  /** Connections that were opened. */
  readonly connections: () => number
}

export const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'

/** Answers each question by `answer`. */
export async function startReceiver(
  answer: (response: ServerResponse, question: Question) => void,
): Promise<Receiver> {
  const questions: Question[] = []
  let connections = 0
  const server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const question = { headers: request.headers, body, path: request.url ?? '' }
      questions.push(question)
      answer(response, question)
    })
  })
  server.on('connection', () => (connections += 1))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}/route`,
    server,
    questions,
    connections: () => connections,
  }
}

/** Answers with this decision. */
export const deciding =
  (decision: object) =>
  (response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(decision))
  }

/** A webhook of the platform for all calls, but for what is given. */
export const webhookRecord = (given: Partial<RoutingWebhookRecord>): RoutingWebhookRecord => ({
  id: 1,
  tenantId: null,
  url: 'http://127.0.0.1:9/',
  carrierId: null,
  setId: null,
  timeoutMs: 2_000,
  fallback: 'continue',
  cacheSeconds: 0,
  cacheKey: ['from', 'to'],
  isEnabled: true,
  secret,
  previous: null,
  ...given,
})

export interface RoutingWebhooksRig {
  readonly webhooks: RoutingWebhooks
  readonly logged: unknown[]
  /** Replaces the rows, and has them read. */
  write(...records: readonly RoutingWebhookRecord[]): Promise<void>
}

/** Real timers and sockets: what is asked is on loopback. */
export async function startRoutingWebhooks(
  records: readonly RoutingWebhookRecord[],
  given: Partial<RoutingWebhooksDeps> = {},
): Promise<RoutingWebhooksRig> {
  let rows = records
  let uuids = 0
  const logged: unknown[] = []
  const webhooks = new RoutingWebhooks({
    load: async () => rows,
    setOfNode: () => undefined,
    watch: () => undefined,
    resolve: () => Promise.reject(new Error('there is no DNS in this test')),
    allowPrivate: true,
    now: () => Date.now(),
    steadyNow: () => performance.now(),
    schedule: (work, delayMs) => {
      const timer = setTimeout(work, delayMs)
      return () => clearTimeout(timer)
    },
    newUuid: () => `uuid-${(uuids += 1)}`,
    log: (...line) => logged.push(line),
    ...given,
  })
  await webhooks.reload()
  onTestFinished(() => webhooks.stop())
  return {
    webhooks,
    logged,
    async write(...written) {
      rows = written
      await webhooks.reload()
    },
  }
}

/** A call from a trusted source, but for what is given. */
export const hookCall = (given: Partial<HookCall> = {}): HookCall => ({
  callUuid: 'call-1',
  callId: 'call-1@198.51.100.7',
  from: '4930100',
  fromName: null,
  to: '4940200',
  domain: 'acme.example',
  source: {
    kind: 'trusted',
    address: '198.51.100.7',
    port: 5060,
    id: null,
    name: null,
    tenantId: null,
  },
  tenantId: null,
  headers: {},
  ...given,
})
