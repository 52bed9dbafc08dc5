/**
 * Accounting webhooks beside live calls: a dead receiver delays no other, and a crash loses no
 * event.
 */
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { onTestFinished, expect, test } from 'vitest'
import { callWith } from '../support/sipp.ts'
import type { TollgateProcess } from '../support/tollgate-process.ts'
import { paying, startCase } from './call-case.ts'
import { eventually } from '../support/waiting.ts'

const clean = { exitCode: 0, errors: '' }
const calls = 10

interface Received {
  readonly id: string
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
}

/** A receiver that answers, or one that takes every connection and never says a word. */
async function openReceiver(isDead: boolean) {
  const received: Received[] = []
  const server: Server = createServer((request, response) => {
    if (isDead) return
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const { type, data } = JSON.parse(body) as Omit<Received, 'id'>
      received.push({ id: String(request.headers['webhook-id']), type, data })
      response.writeHead(204).end()
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  return { received, url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/` }
}

async function listen(
  tollgate: TollgateProcess,
  events: readonly string[],
  ...urls: readonly string[]
): Promise<void> {
  const key = await tollgate.createKey('--name', 'ops', '--scopes', '*')
  for (const url of urls) {
    const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1/webhooks`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ url, events }),
    })
    expect(answer.status).toBe(201)
  }
}

test('calls go on beside a dead receiver, and each is told to the living one, over a crash', async () => {
  const { tollgate } = await startCase({
    nodes: ['answers'],
    // Enough to reserve a minute for every call at once, however slow the machine is.
    balance: '100.00',
    environment: { WEBHOOK_PRIVATE_TARGETS: 'allow' },
  })
  const [dead, living] = [await openReceiver(true), await openReceiver(false)]
  await listen(tollgate, ['call.ended'], dead.url, living.url)

  const load = { keys: { caller: paying }, calls, rate: 20 }
  expect(await callWith('inbound/answered.xml', tollgate.sipPort, load)).toEqual(clean)
  await tollgate.kill()
  await tollgate.restart()

  const stored = await tollgate.waitForCalls(calls)
  const uuids = stored.map((call) => call.call_uuid).toSorted((a, b) => a.localeCompare(b))
  await eventually(() => {
    const told = new Set(living.received.map(({ data }) => String(data['call_uuid'])))
    expect([...told].toSorted((a, b) => a.localeCompare(b))).toEqual(uuids)
  })
  expect(new Set(living.received.map(({ id }) => id)).size).toBe(calls)
  // A call that ended in the millisecond of its answer lasted no second and costs nothing.
  const debits = stored.filter((call) => call.cost_micros > 0).length
  expect(tollgate.wallet('paying').debits).toBe(debits)
  // A delivery is noted a moment after it has arrived.
  await eventually(() =>
    expect(tollgate.query("SELECT id FROM webhook_delivery WHERE state = 'pending'")).toHaveLength(
      calls,
    ),
  )
})
