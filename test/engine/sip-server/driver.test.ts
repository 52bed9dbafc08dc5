import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Output } from '../../../engine/sip-server/core/outbox.ts'
import { Driver } from '../../../engine/sip-server/driver.ts'
import type { Flow } from '../../../engine/sip-server/flow.ts'
import type { RequestRoute } from '../../../engine/sip-server/options.ts'
import { thisMachine } from '../../../engine/sip-server/machine.ts'

const listener = {
  protocol: 'udp',
  address: '127.0.0.1',
  port: 5060,
  advertisedHost: '127.0.0.1',
  advertisedPort: 5060,
} as const
const flow: Flow = { listener, address: '192.0.2.1', port: 5062, connectionId: 0 }

beforeEach(() => void vi.useFakeTimers({ now: 1_000 }))
afterEach(() => void vi.useRealTimers())

function setUp(admit: (source: Flow) => boolean = () => true) {
  const log: string[] = []
  const errors: unknown[] = []
  const outputs: Output[] = []
  const core = {
    deadline: undefined as number | undefined,
    onReceive: (_text: string): void => undefined,
    onTimeout: (): void => undefined,
  }
  const driven = {
    receive: (text: string, _flow: Flow, now: number) => {
      log.push(`receive ${text} at ${now}`)
      core.onReceive(text)
    },
    command: () => undefined,
    routed: (transactionId: string, route: RequestRoute | undefined, now: number) =>
      log.push(`routed ${transactionId} ${JSON.stringify(route)} at ${now}`),
    /** Any other event. */
    note: (event: string, now: number) => log.push(`${event} at ${now}`),
    handleTimeout: (now: number) => {
      log.push(`timeout at ${now}`)
      core.deadline = undefined
      core.onTimeout()
    },
    nextDeadline: () => core.deadline,
    nextOutput: () => outputs.shift(),
  }
  const driver: Driver<typeof driven> = new Driver(
    driven,
    {
      send: (text, to, reference) => log.push(`send ${text} to ${to.port} as ${reference}`),
      close: (closing) => log.push(`close ${closing.port}`),
      deliver: (clientId, { kind }) => log.push(`deliver ${clientId} ${kind}`),
      disconnect: (clientId) => {
        log.push(`disconnect ${clientId}`)
        driver.run('lost client', (to, now) => to.note(`disconnected ${clientId}`, now))
      },
      dialOut: (clientId, uri) => log.push(`dial out ${clientId} at ${uri}`),
      registeredFlowClosed: ({ port }) => log.push(`closed ${port}`),
      resolve: ({ host }, reference) => log.push(`resolve ${host} as ${reference}`),
    },
    {
      now: Date.now,
      schedule: thisMachine.schedule,
      admit,
      log: (level, message, fields) => errors.push({ level, message, ...fields }),
    },
  )
  const packet = (text: string) => driver.datagram(Buffer.from(text), flow)
  const event = (name: string) => driver.run(name, (to, now) => to.note(name, now))
  return { driver, core, outputs, log, errors, packet, event }
}

test('an exception in the core drops that packet, is logged, and the server goes on', () => {
  const { core, outputs, log, errors, packet } = setUp()
  core.onReceive = (text) => {
    outputs.push({ kind: 'send', text, flow, reference: 'r' })
    if (text === 'poison') throw new Error('bug')
  }
  packet('poison')
  packet('good')
  expect(errors).toHaveLength(1)
  expect(errors[0]).toMatchObject({
    level: 'error',
    message: 'SIP core failed, event dropped: packet',
    address: '192.0.2.1',
    port: 5062,
  })
  expect(errors[0]).toHaveProperty('stack')
  expect(log.at(-1)).toBe('send good to 5062 as r')
})

test('while it is held, the network waits, and applications and deadlines do not', () => {
  const { driver, core, log, packet, event } = setUp()
  driver.hold()
  core.deadline = 1_500
  packet('first')
  driver.message('second', flow)
  event('command')
  vi.advanceTimersByTime(600)
  expect(log).toEqual(['command at 1000', 'timeout at 1500'])
  driver.release()
  packet('third')
  expect(log.slice(2).map((line) => line.split(' ')[1])).toEqual(['first', 'second', 'third'])
})

test('what is held has a bound: a datagram beyond it is dropped, a connection closed', () => {
  const { driver, log, packet } = setUp()
  driver.hold()
  for (let number = 0; number < 20_000; number++) packet('x')
  packet('beyond')
  driver.message('beyond', { ...flow, port: 7, connectionId: 1 })
  expect(log).toEqual(['close 7'])
  driver.release()
  vi.advanceTimersByTime(20_000)
  expect(log.filter((line) => line.includes('beyond'))).toEqual([])
  expect(log).toHaveLength(20_001)
})

test('what becomes of a request is told when it is known; a failure refuses it', async () => {
  const { core, outputs, log, errors, packet } = setUp()
  core.onReceive = () =>
    outputs.push(
      { kind: 'await-route', route: Promise.resolve({ tag: 'a' }), transactionId: 't1' },
      { kind: 'await-route', route: Promise.reject(new Error('no')), transactionId: 't2' },
    )
  packet('x')
  await vi.advanceTimersByTimeAsync(1)
  expect(log).toEqual([
    'receive x at 1000',
    'routed t1 {"tag":"a"} at 1000',
    'routed t2 {"reject":{"status":480}} at 1000',
  ])
  expect(errors).toEqual([
    { level: 'warn', message: 'a request was not routed', reason: 'Error: no' },
  ])
})
