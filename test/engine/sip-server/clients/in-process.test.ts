import { setImmediate as turn } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Clients } from '../../../../engine/sip-server/clients/clients.ts'
import { connectApplication } from '../../../../engine/sip-server/clients/in-process.ts'

const named = (commandId: string) => ({ kind: 'ok', commandId }) as const
const asking = (id: string) => ({ id, command: { kind: 'ping' } }) as const

function setUp(onEvent: (name: string) => void = () => undefined) {
  const log: string[] = []
  const clients = new Clients({
    connected: (clientId) => log.push(`connected ${clientId}`),
    command: (clientId, { id }) => log.push(`from ${clientId}: ${id}`),
    disconnected: (clientId) => log.push(`disconnected ${clientId}`),
  })
  const link = connectApplication(clients, {
    onEvent: (event) => {
      const name = 'commandId' in event ? event.commandId : ''
      log.push(`to app: ${name}`)
      onEvent(name)
    },
    onClose: () => log.push('app sees close'),
  })
  log.length = 0
  return { clients, link, log }
}

test('what an event resolved has run before the next event arrives', async () => {
  const { clients, log } = setUp((name) => {
    void Promise.resolve()
      .then(() => undefined)
      .then(() => log.push(`then ${name}`))
  })
  clients.deliver(1, named('a'))
  clients.deliver(1, named('b'))
  await turn()
  expect(log).toEqual(['to app: a', 'then a', 'to app: b', 'then b'])
})

test('when the server disconnects, what was delivered before still arrives, then the close', async () => {
  const { clients, link, log } = setUp()
  clients.deliver(1, named('last words'))
  clients.disconnect(1)
  clients.deliver(1, named('too late'))
  link.send(asking('too late as well'))
  await turn()
  expect(log).toEqual(['disconnected 1', 'to app: last words', 'app sees close'])
  expect(clients.size).toBe(0)
})

test('a client that far outruns the event loop is dropped', async () => {
  const { clients, log } = setUp()
  for (let sent = 0; sent < 70_000; sent++) clients.deliver(1, named('x'))
  await turn()
  expect(log.at(-1)).toBe('app sees close')
  expect(log.filter((line) => line === 'to app: x')).toHaveLength(65_536)
  expect(clients.size).toBe(0)
})
