import { createSocket } from 'node:dgram'
import { expect, onTestFinished, test } from 'vitest'
import { knock } from '../../engine/call/user-agent/server-link.ts'
import { emitted, turnOfEventLoop } from '../support/waiting.ts'

/** Timers that the test runs; each says how long it was to wait. */
function heldTimers() {
  const held = new Map<() => void, number>()
  const schedule = (work: () => void, delayMs: number) => {
    held.set(work, delayMs)
    return () => void held.delete(work)
  }
  const run = (delayMs: number): number => {
    const due = [...held].filter(([, each]) => each === delayMs)
    for (const [work] of due) {
      held.delete(work)
      work()
    }
    return due.length
  }
  return { schedule, run, held }
}

test('the patience is over before the socket is bound: nothing is sent, and nothing is sent again', async () => {
  const { schedule, run, held } = heldTimers()
  const status = knock([{ host: '127.0.0.1', port: 9 }], 'probe', schedule)
  expect(run(600)).toBe(1)
  expect(await status).toBe(undefined)
  for (let turns = 0; turns < 20; turns++) await turnOfEventLoop()
  expect(run(20)).toBe(1)
  expect(held.size).toBe(0)
})

test('a final response that comes twice ends it once', async () => {
  const { schedule, run } = heldTimers()
  const server = createSocket('udp4')
  onTestFinished(() => void server.close())
  server.bind(0, '127.0.0.1')
  await emitted(server, 'listening')
  const { port } = server.address()
  const status = knock([{ host: '127.0.0.1', port }], 'probe', schedule)
  const [invite, from] = (await emitted(server, 'message')) as [Buffer, { port: number }]
  const response = invite.toString().replace(/^INVITE .*/, 'SIP/2.0 404 Not Found')
  for (let copy = 0; copy < 2; copy++) server.send(response, from.port, '127.0.0.1')
  expect(await status).toBe(404)
  // Both acknowledged or one: the second may not have been read yet.
  await emitted(server, 'message')
  for (let turns = 0; turns < 20; turns++) await turnOfEventLoop()
  expect(run(20)).toBe(1)
})
