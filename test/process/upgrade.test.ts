/** The built program is upgraded while it serves: by itself, since the program on disk is the same. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as pass } from 'node:timers/promises'
import Database from 'better-sqlite3'
import { describe, expect, onTestFinished, test } from 'vitest'
import { expectPaid, paying, seedFor } from '../sipp/call-case.ts'
import { onSqlite } from '../support/on-sqlite.ts'
import { type AtEnd, openPeer, startWithNode } from '../support/scripted-node.ts'
import { type Leg, sdp, type SipPeer } from '../support/sip-peer.ts'
import { callWith, SippNode } from '../support/sipp.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { isGone, upgrade } from '../support/upgrading.ts'
import { eventually, patientNodes } from '../support/waiting.ts'

const environment = { ...patientNodes, DRAIN_SECONDS: '20' }

/** As `environment`, and the new process of an upgrade stands still before it does anything, for longer than it may. */
const withoutSuccess = {
  ...environment,
  NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(`
    if (process.env.TOLLGATE_UPGRADE !== undefined)
      await new Promise(() => setTimeout(() => process.exit(1), 60_000))
  `)}`,
}

/** The id of the process that an upgrade has started. */
const newProcess = (tollgate: TollgateProcess): Promise<number> =>
  eventually(() => {
    const [, pid] = /"newProcess":(\d+)/.exec(tollgate.log.join('')) ?? []
    if (pid === undefined) throw new Error('no upgrade has begun')
    return Number(pid)
  })

async function answersOptions(port: number): Promise<void> {
  const { answered } = await optionsDuring(port, () => pass(20))
  expect(answered).toBeGreaterThan(0)
}

/** More would not find room in the socket of a program that stands still for a moment: the kernel would lose them. */
const MAX_UNANSWERED = 100

/** Sends 250 OPTIONS a second, or as many as are answered, while `work` goes on; each has its own Call-ID. */
async function optionsDuring(port: number, work: () => Promise<unknown>) {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4_194_304 }).bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const answers = new Map<string, number>()
  socket.on('message', (bytes) => {
    const callId = /^Call-ID: (.*)\r$/im.exec(bytes.toString())?.[1] ?? ''
    answers.set(callId, (answers.get(callId) ?? 0) + 1)
  })
  let sent = 0
  const send = () => {
    const number = ++sent
    const lines = [
      `OPTIONS sip:tollgate@127.0.0.1:${port} SIP/2.0`,
      `Via: SIP/2.0/UDP 127.0.0.1:${socket.address().port};rport;branch=z9hG4bK-${number}`,
      'Max-Forwards: 70',
      `From: <sip:peer@127.0.0.1>;tag=${number}`,
      `To: <sip:tollgate@127.0.0.1>`,
      `Call-ID: options-${number}`,
      'CSeq: 1 OPTIONS',
      'Content-Length: 0',
    ]
    socket.send(`${lines.join('\r\n')}\r\n\r\n`, port, '127.0.0.1')
  }
  const start = performance.now()
  const isDue = (): boolean =>
    sent < (performance.now() - start) / 4 && sent - answers.size < MAX_UNANSWERED
  const timer = setInterval(() => {
    while (isDue()) send()
  }, 4)
  await work()
  clearInterval(timer)
  await eventually(() => {
    if (answers.size < sent) throw new Error(`${answers.size} of ${sent} OPTIONS are answered`)
  })
  socket.close()
  const twice = [...answers.values()].filter((count) => count > 1).length
  return { sent, answered: answers.size, twice }
}

interface Call {
  readonly caller: SipPeer
  readonly leg: Leg
}

async function invite(tollgate: TollgateProcess, atEnd: AtEnd = onTestFinished): Promise<Call> {
  const caller = await openPeer(tollgate, atEnd)
  const plain = caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`)
  const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${paying}@`) }
  caller.request('INVITE', leg, { body: sdp('caller') })
  return { caller, leg }
}

async function acknowledge({ caller, leg }: Call, node: SipPeer): Promise<void> {
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  await node.next('ACK')
}

async function hangUp({ caller, leg }: Call, node: SipPeer): Promise<void> {
  caller.request('BYE', leg)
  node.reply(await node.next('BYE'), 200)
  await caller.next('200 BYE')
}

/** Beside each other: the old processes stay for some seconds, and do nothing. */
describe.concurrent('until the old process has gone', () => {
  test('no datagram is lost and none is answered twice while the process is upgraded twice', async ({
    onTestFinished: atEnd,
  }) => {
    const { tollgate } = await startWithNode(seedFor, environment, atEnd)
    const first = tollgate.pid
    const { sent, twice } = await optionsDuring(tollgate.sipPort, async () => {
      await upgrade(tollgate, atEnd)
      await isGone(first)
      await upgrade(tollgate, atEnd)
      await pass(300)
    })
    expect(sent).toBeGreaterThan(250)
    expect(twice).toBe(0)
    expect(tollgate.faults).toEqual([])
    const { status } = await fetch(`http://127.0.0.1:${tollgate.apiPort}/readyz`)
    expect(status).toBe(200)
  })

  test('calls that ring or talk during an upgrade go on, and are billed once', async ({
    onTestFinished: atEnd,
  }) => {
    const { node, tollgate } = await startWithNode(seedFor, environment, atEnd)
    const first = tollgate.pid
    const talking = await invite(tollgate, atEnd)
    node.reply(await node.next('INVITE'), 200, { tag: 'b', body: sdp('node') })
    await acknowledge(talking, node)
    const ringing = await invite(tollgate, atEnd)
    const invited = await node.next('INVITE')
    node.reply(invited, 180, { tag: 'c' })
    await ringing.caller.next('180 INVITE')

    await upgrade(tollgate, atEnd)
    node.reply(invited, 200, { tag: 'c', body: sdp('node') })
    await acknowledge(ringing, node)
    const later = await invite(tollgate, atEnd)
    node.reply(await node.next('INVITE'), 200, { tag: 'd', body: sdp('node') })
    await acknowledge(later, node)
    for (const call of [talking, ringing, later]) await hangUp(call, node)

    const calls = await tollgate.waitForCalls(3)
    for (const call of calls) {
      expect(call).toMatchObject({ hangup_by: 'caller', is_recovered: 0 })
      expectPaid(call, 1)
    }
    expect(tollgate.wallet('paying').debits).toBe(3)
    await isGone(first)
    expect(tollgate.faults).toEqual([])
  })

  test('the new process goes on with live calls: the old one ends, and each is hung up and billed once', async ({
    onTestFinished: atEnd,
  }) => {
    const { node, tollgate } = await startWithNode(seedFor, environment, atEnd)
    const first = tollgate.pid
    const calls: Call[] = []
    for (const tag of ['b', 'c', 'd']) {
      const call = await invite(tollgate, atEnd)
      node.reply(await node.next('INVITE'), 200, { tag, body: sdp('node') })
      await acknowledge(call, node)
      calls.push(call)
    }
    await upgrade(tollgate, atEnd)
    await isGone(first)
    await eventually(() => expect(tollgate.log.join()).toContain('"restoredCalls":3'))
    for (const call of calls) await hangUp(call, node)
    for (const call of await tollgate.waitForCalls(3)) {
      expect(call).toMatchObject({ hangup_by: 'caller', is_recovered: 0 })
      expectPaid(call, call.billsec)
    }
    expect(tollgate.wallet('paying').debits).toBe(3)
    expect(tollgate.faults).toEqual([])
  })
})

test('SIPp places calls without a failure while the process is upgraded', async () => {
  const node = await SippNode.start('nodes/answers.xml')
  onTestFinished(async () => void (await node.stop()))
  const rich = { name: 'rich', rate_plan: 'retail', numbers: ['15557770000'], balance: '1000.00' }
  const seed = seedFor([node.port], { customers: [rich] })
  const tollgate = await TollgateProcess.start(seed, environment)
  onTestFinished(() => tollgate.stop())
  const judged = callWith('inbound/answered.xml', tollgate.sipPort, {
    keys: { caller: '15557770000' },
    calls: 60,
    rate: 20,
  })
  await pass(300)
  await upgrade(tollgate)
  expect(await judged).toEqual({ exitCode: 0, errors: '' })
  const calls = await tollgate.waitForCalls(60)
  expect(calls.filter((call) => call.disposition !== 'ANSWERED')).toEqual([])
  expect(tollgate.wallet('rich').debits).toBe(60)
})

onSqlite('file')(
  'a database that another version needs differently is refused, and the process goes on',
  async () => {
    const { tollgate } = await startWithNode(seedFor, environment)
    const database = new Database(tollgate.databasePath)
    const version = Number(database.pragma('user_version', { simple: true }))
    database.pragma(`user_version = ${version - 1}`)
    database.close()
    await expect(tollgate.run(['upgrade'])).rejects.toThrow(
      `not upgraded: cannot upgrade: the database is at version ${version - 1}`,
    )
    await answersOptions(tollgate.sipPort)
  },
)

test('one upgrade at a time; a new process that is killed before it serves leaves the old one serving', async () => {
  const { tollgate } = await startWithNode(seedFor, withoutSuccess)
  tollgate.signal('SIGUSR2')
  const pid = await newProcess(tollgate)
  await expect(tollgate.run(['upgrade'])).rejects.toThrow('an upgrade is under way already')
  await answersOptions(tollgate.sipPort)
  process.kill(pid, 'SIGKILL')
  await expect.poll(() => tollgate.log.join()).toContain('was ended by SIGKILL')
  await answersOptions(tollgate.sipPort)
  expect(await tollgate.terminate()).toBe(0)
})

test('SIGTERM before the new process serves stops both', async () => {
  const { tollgate } = await startWithNode(seedFor, withoutSuccess)
  tollgate.signal('SIGUSR2')
  const pid = await newProcess(tollgate)
  expect(await tollgate.terminate()).toBe(0)
  await isGone(pid)
})

test('a call that the old process still has when it is killed goes on in the new one', async () => {
  const { node, tollgate } = await startWithNode(seedFor, environment)
  const ringing = await invite(tollgate)
  const invited = await node.next('INVITE')
  node.reply(invited, 180, { tag: 'c' })
  await ringing.caller.next('180 INVITE')
  await upgrade(tollgate)
  node.reply(invited, 200, { tag: 'c', body: sdp('node') })
  const answer = await ringing.caller.next('200 INVITE')
  await tollgate.kill()
  await expect.poll(() => tollgate.log.join()).toContain('"restoredCalls":1')
  ringing.caller.learn(ringing.leg, answer)
  ringing.caller.request('ACK', ringing.leg)
  await hangUp(ringing, node)
  const [call] = await tollgate.waitForCalls(1)
  expect(call).toMatchObject({ disposition: 'ANSWERED', hangup_by: 'caller', is_recovered: 0 })
  expect(tollgate.wallet('paying').debits).toBe(1)
  await answersOptions(tollgate.sipPort)
})
