/**
 * The program on the sockets of a service manager, as systemd passes them: nothing that comes while
 * it restarts is lost.
 */
import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect } from 'node:net'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, onTestFinished, test } from 'vitest'
import { expectPaid, paying, seedFor } from '../sipp/call-case.ts'
import { freePort } from '../support/free-port.ts'
import { PassedSockets } from '../support/passed-sockets.ts'
import { programEnvironment } from '../support/program-environment.ts'
import { openPeer, startWithNode } from '../support/scripted-node.ts'
import { type Leg, sdp, type SipPeer } from '../support/sip-peer.ts'
import type { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually } from '../support/waiting.ts'

const started = () => startWithNode(seedFor, {}, { isActivated: true })

function options(number: number, transport: string, port: number): string {
  const lines = [
    `OPTIONS sip:tollgate@127.0.0.1 SIP/2.0`,
    `Via: SIP/2.0/${transport} 127.0.0.1:${port};rport;branch=z9hG4bK-${number}`,
    'Max-Forwards: 70',
    `From: <sip:peer@127.0.0.1>;tag=${number}`,
    'To: <sip:tollgate@127.0.0.1>',
    `Call-ID: options-${number}`,
    'CSeq: 1 OPTIONS',
    'Content-Length: 0',
  ]
  return `${lines.join('\r\n')}\r\n\r\n`
}

interface Call {
  readonly caller: SipPeer
  readonly leg: Leg
}

async function invite(tollgate: TollgateProcess): Promise<Call> {
  const caller = await openPeer(tollgate)
  const plain = caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`)
  const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${paying}@`) }
  caller.request('INVITE', leg, { body: sdp('caller') })
  return { caller, leg }
}

async function talk(tollgate: TollgateProcess, node: SipPeer, tag: string): Promise<Call> {
  const call = await invite(tollgate)
  const { caller, leg } = call
  node.reply(await node.next('INVITE'), 200, { tag, body: sdp('node') })
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  await node.next('ACK')
  return call
}

async function hangUp({ caller, leg }: Call, node: SipPeer): Promise<void> {
  caller.request('BYE', leg)
  node.reply(await node.next('BYE'), 200)
  await caller.next('200 BYE')
}

test('no request by UDP is lost, and none is answered twice, over two restarts', async () => {
  const { tollgate } = await started()
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4_194_304 }).bind(0, '127.0.0.1')
  onTestFinished(() => void socket.close())
  await once(socket, 'listening')
  const { port } = socket.address()
  const answers = new Map<string, number>()
  socket.on('message', (bytes) => {
    const callId = /^Call-ID: (.*)\r$/im.exec(bytes.toString())?.[1] ?? ''
    answers.set(callId, (answers.get(callId) ?? 0) + 1)
  })
  const sent: string[] = []
  const copies: number[] = []
  const send = (number: number): void => {
    copies[number] = (copies[number] ?? 0) + 1
    socket.send(sent[number] ?? '', tollgate.sipPort, '127.0.0.1')
  }
  const sendMore = (): void => {
    for (let count = 0; count < 20; count += 1)
      send(sent.push(options(sent.length, 'UDP', port)) - 1)
  }
  sendMore()
  for (let restarts = 0; restarts < 2; restarts += 1) {
    const ended = tollgate.terminate()
    sendMore()
    await ended
    sendMore()
    await tollgate.restart()
  }
  // As every sender does with what is not answered after T1: the process that ends drops what
  // begins something.
  await eventually(() => {
    const unanswered = [...sent.keys()].filter((number) => !answers.has(`options-${number}`))
    for (const number of unanswered) send(number)
    expect(unanswered).toEqual([])
  })
  const answersOf = (number: number): number => answers.get(`options-${number}`) ?? 0
  expect(copies.filter((count, number) => answersOf(number) > count)).toEqual([])
})

test('connections of SIP and HTTP that are opened while it restarts are served by the next process', async () => {
  const { tollgate } = await started()
  await tollgate.terminate()
  const socket = connect(tollgate.sipPort, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  await once(socket, 'connect')
  socket.write(options(1, 'TCP', 5060))
  const healthy = fetch(`http://127.0.0.1:${tollgate.apiPort}/readyz`)
  await tollgate.restart()
  expect((await healthy).status).toBe(200)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  expect(answer.toString()).toMatch(/^SIP\/2.0 200 /)
})

test('calls go on in the next process and are billed once; one that rings gets 503, and its callee CANCEL', async () => {
  const { node, tollgate } = await started()
  const calls = [await talk(tollgate, node, 'b'), await talk(tollgate, node, 'c')]
  const ringing = await invite(tollgate)
  const invited = await node.next('INVITE')
  node.reply(invited, 180, { tag: 'd' })
  await ringing.caller.next('180 INVITE')
  const restarted = tollgate.restartInOrder()
  node.reply(await node.next('CANCEL'), 200)
  node.reply(invited, 487, { tag: 'd' })
  const refused = await ringing.caller.next('503 INVITE')
  expect(refused.get('Retry-After')).not.toBe('')
  await restarted
  expect(tollgate.log.join()).toContain('"restoredCalls":2')
  for (const call of calls) await hangUp(call, node)
  const records = (await tollgate.waitForCalls(3)).filter(({ billsec }) => billsec > 0)
  expect(records).toHaveLength(2)
  for (const record of records) {
    expect(record).toMatchObject({ hangup_by: 'caller', is_recovered: 0 })
    expectPaid(record, record.billsec)
  }
  expect(tollgate.wallet('paying').debits).toBe(2)
  expect(tollgate.faults).toEqual([])
})

test('a socket that no setting names is refused in one sentence', async () => {
  const port = await freePort()
  const sockets = await PassedSockets.bind([{ protocol: 'udp', port }])
  onTestFinished(() => sockets.close())
  const command = [process.execPath, 'dist/main.js', 'serve']
  const child = spawn('/bin/sh', ['-c', 'LISTEN_PID=$$ exec "$@"', 'sh', ...command], {
    env: {
      ...programEnvironment,
      DATABASE_PATH: ':memory:',
      LISTEN_FDS: '1',
      SIP_LISTEN: 'udp/127.0.0.1:0',
    },
    stdio: ['ignore', 'ignore', 'pipe', ...sockets.descriptors],
  })
  const ended = once(child, 'exit')
  expect(await text(child.stderr as Readable)).toBe(
    `tollgate: LISTEN_FDS: the socket udp 127.0.0.1:${port} is none of SIP_LISTEN, API_LISTEN, EDGE_LISTEN\n`,
  )
  expect(await ended).toEqual([2, null])
})
