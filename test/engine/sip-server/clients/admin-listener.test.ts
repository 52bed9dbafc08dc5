import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { Clients } from '../../../../engine/sip-server/clients/clients.ts'
import type { AppEvent } from '../../../../engine/sip-server/application.ts'
import {
  AdminListener,
  type AdminOptions,
} from '../../../../engine/sip-server/clients/admin-listener.ts'
import { encodeFrame } from '../../../../engine/sip-server/wire/frame.ts'
import { closed, emitted, Signal } from '../../../support/waiting.ts'

async function setUp(options: AdminOptions = { maxClients: 4, maxBufferedBytes: 100_000 }) {
  const seen: string[] = []
  const dropped: unknown[] = []
  const changed = new Signal()
  const saw = (what: string) => {
    seen.push(what)
    changed.fire()
  }
  const clients = new Clients({
    connected: (clientId) => saw(`connected ${clientId}`),
    command: (clientId, asked) =>
      saw(`from ${clientId}: ${asked.id} ${asked.command ? asked.command.kind : asked.problem}`),
    disconnected: (clientId) => saw(`disconnected ${clientId}`),
  })
  const listener = new AdminListener(clients, options, (_level, _message, fields) =>
    dropped.push(fields?.['reason']),
  )
  const { port } = await listener.start('127.0.0.1', 0)
  onTestFinished(() => listener.stop())
  const seeing = (what: string) => changed.until(() => seen.includes(what))
  const app = (): Socket => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    onTestFinished(() => void socket.destroy())
    return socket
  }
  return { clients, seen, dropped, seeing, app, listener }
}

const refusal = (problem: string): AppEvent => ({ kind: 'refused', commandId: 'c', problem })

test('an application sends frames and is sent frames', async () => {
  const { clients, seeing, app } = await setUp()
  const socket = app()
  socket.write('6#1|ping7#2|')
  await seeing('from 1: 1 ping')
  socket.write('route')
  await seeing('from 1: 2 a verb is missing')
  clients.deliver(1, refusal('grüße'))
  const [bytes] = await emitted(socket, 'data')
  expect(String(bytes)).toBe(encodeFrame('1|response|c|NOK|grüße'))
})

test('a stream that is not framed is closed', async () => {
  const { seeing, app, dropped } = await setUp()
  const socket = app()
  socket.write('GET / HTTP/1.1\r\n')
  await closed(socket)
  await seeing('disconnected 1')
  expect(dropped).toEqual(['length is not a number'])
})

test('an application that does not read is dropped at the bound', async () => {
  const { clients, seeing, app, dropped } = await setUp()
  app().pause()
  await seeing('connected 1')
  const event = refusal('x'.repeat(50_000))
  for (let sent = 0; sent < 200 && clients.size === 1; sent++) {
    clients.deliver(1, event)
    await new Promise(setImmediate)
  }
  await seeing('disconnected 1')
  expect(dropped).toEqual(['it does not read'])
})

test('one that stops to read is dropped in time, before much waits for it; one that goes on is not', async () => {
  const limits = { maxClients: 4, maxBufferedBytes: 64_000_000, unreadMs: 3_000 }
  const { clients, seeing, app, dropped } = await setUp(limits)
  const wedged = app()
  await seeing('connected 1')
  wedged.pause()
  app().resume()
  await seeing('connected 2')
  // More than the kernel keeps for them.
  const event = refusal('x'.repeat(200_000))
  for (let sent = 0; sent < 100; sent++) for (const id of [1, 2]) clients.deliver(id, event)
  await seeing('disconnected 1')
  expect([dropped, clients.size]).toEqual([['it does not read'], 1])
})

test('more applications than allowed are refused', async () => {
  const { seeing, app, seen } = await setUp({ maxClients: 1, maxBufferedBytes: 1_000 })
  app()
  await seeing('connected 1')
  await closed(app())
  expect(seen).toEqual(['connected 1'])
})

test('who has said nothing yet takes at most half of the places', async () => {
  const { seeing, app, seen } = await setUp({ maxClients: 4, maxBufferedBytes: 1_000 })
  const [one] = [app(), app()]
  await seeing('connected 2')
  await closed(app())
  expect(seen).toEqual(['connected 1', 'connected 2'])
  one.write('6#1|ping')
  await seeing('from 1: 1 ping')
  app()
  await seeing('connected 3')
})

test('a first frame that drips is not waited for', async () => {
  const limits = { maxClients: 4, maxBufferedBytes: 1_000, firstFrameMs: 100 }
  const { seeing, app, dropped } = await setUp(limits)
  const socket = app()
  socket.write('6000#')
  const drip = setInterval(() => socket.write('x'), 10)
  await seeing('disconnected 1')
  clearInterval(drip)
  expect(dropped).toEqual(['no frame in time'])
})
