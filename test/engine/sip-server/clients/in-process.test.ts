import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Clients } from '../../../../engine/sip-server/clients/client.ts'
import { connectInProcess } from '../../../../engine/sip-server/clients/in-process.ts'

function setUp(onPayload: (payload: string) => void = () => undefined) {
  const log: string[] = []
  const clients = new Clients({
    connected: (clientId) => log.push(`connected ${clientId}`),
    payload: (clientId, payload) => log.push(`from ${clientId}: ${payload}`),
    disconnected: (clientId) => log.push(`disconnected ${clientId}`),
  })
  const link = connectInProcess(clients, {
    onPayload: (payload) => {
      log.push(`to app: ${payload}`)
      onPayload(payload)
    },
    onClose: () => log.push('app sees close'),
  })
  log.length = 0
  return { clients, link, log }
}

test('payloads reach the application later, in order', async () => {
  const { clients, log } = setUp()
  clients.deliver(1, 'a')
  clients.deliver(1, 'b')
  expect(log).toEqual([])
  await turn()
  expect(log).toEqual(['to app: a', 'to app: b'])
})

test('what a payload resolved has run before the next payload arrives', async () => {
  const { clients, log } = setUp((payload) => {
    void Promise.resolve()
      .then(() => undefined)
      .then(() => log.push(`then ${payload}`))
  })
  clients.deliver(1, 'a')
  clients.deliver(1, 'b')
  await turn()
  expect(log).toEqual(['to app: a', 'then a', 'to app: b', 'then b'])
})

test('an application may send while it is handed a payload', async () => {
  const { clients, link, log } = setUp((payload) => {
    if (payload === 'a') {
      link.send('reply')
      clients.deliver(1, 'c')
      log.push('a handled')
    }
  })
  clients.deliver(1, 'a')
  clients.deliver(1, 'b')
  await turn()
  await turn()
  expect(log).toEqual(['to app: a', 'from 1: reply', 'a handled', 'to app: b', 'to app: c'])
})

test('when the server disconnects, what was delivered before still arrives, then the close', async () => {
  const { clients, link, log } = setUp()
  clients.deliver(1, 'last words')
  clients.disconnect(1)
  clients.deliver(1, 'too late')
  link.send('too late as well')
  await turn()
  expect(log).toEqual(['disconnected 1', 'to app: last words', 'app sees close'])
  expect(clients.size).toBe(0)
})

test('when the application closes, nothing more is handed over', async () => {
  const { clients, link, log } = setUp()
  clients.deliver(1, 'a')
  link.close()
  link.close()
  await turn()
  expect(log).toEqual(['disconnected 1'])
})

test('a client that far outruns the event loop is dropped', async () => {
  const { clients, log } = setUp()
  for (let sent = 0; sent < 70_000; sent++) clients.deliver(1, 'x')
  await turn()
  expect(log.at(-1)).toBe('app sees close')
  expect(log.filter((line) => line === 'to app: x')).toHaveLength(65_536)
  expect(clients.size).toBe(0)
})
