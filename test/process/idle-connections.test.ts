import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { paying, seedFor } from '../sipp/call-case.ts'
import { residentMegabytes } from '../bench/load/process-cpu.ts'
import { callWith, SippNode } from '../support/sipp.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientNodes } from '../support/waiting.ts'

const wanted = 10_000
/** Of the API's listener; the connections beyond it are closed at once. */
const held = 4_096

/** Resolves when the connection stands, or is closed again. */
async function openIdle(port: number, localAddress: string): Promise<Socket> {
  const socket = connect({ host: '127.0.0.1', port, localAddress })
  socket.on('error', () => undefined)
  await Promise.race([once(socket, 'connect'), once(socket, 'close')])
  return socket
}

async function openMany(port: number): Promise<readonly Socket[]> {
  const sockets: Socket[] = []
  // As many at once as the kernel's queue of new connections takes.
  while (sockets.length < wanted) {
    const address = `127.0.1.${1 + sockets.length / 200}`
    sockets.push(...(await Promise.all(Array.from({ length: 200 }, () => openIdle(port, address)))))
  }
  return sockets
}

/** Of those of one address. */
const ofOneAddress = 256

const isOpen = (socket: Socket): boolean => !socket.destroyed && !socket.readableEnded

test('10,000 idle connections to the API cost bounded memory, and calls do not notice', async () => {
  const node = await SippNode.start('nodes/answers.xml')
  onTestFinished(async () => void (await node.stop()))
  const tollgate = await TollgateProcess.start(seedFor([node.port]), patientNodes)
  onTestFinished(() => tollgate.stop())
  const before = residentMegabytes(tollgate.pid)

  const sockets = await openMany(tollgate.apiPort)
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  for (const socket of sockets) socket.resume()
  await expect.poll(() => sockets.filter(isOpen).length).toBeLessThanOrEqual(held)
  expect(sockets.filter(isOpen).length).toBeGreaterThan(held / 2)
  expect(residentMegabytes(tollgate.pid) - before).toBeLessThan(100)

  const judged = await callWith('inbound/answered.xml', tollgate.sipPort, {
    keys: { caller: paying },
  })
  expect(judged).toEqual({ exitCode: 0, errors: '' })
  expect(await tollgate.waitForCalls(1)).toContainEqual(
    expect.objectContaining({ disposition: 'ANSWERED' }),
  )
  expect(tollgate.faults).toEqual([])

  for (const socket of sockets) socket.destroy()
  const ready = async () => (await fetch(`http://127.0.0.1:${tollgate.apiPort}/readyz`)).status
  await expect.poll(() => ready().catch(() => 0)).toBe(200)

  // One address, by itself, takes no more than its part: others are served.
  const own = await Promise.all(
    Array.from({ length: 400 }, () => openIdle(tollgate.apiPort, '127.0.2.1')),
  )
  onTestFinished(() => {
    for (const socket of own) socket.destroy()
  })
  for (const socket of own) socket.resume()
  await expect.poll(() => own.filter(isOpen).length).toBe(ofOneAddress)
  expect(await ready()).toBe(200)
})
