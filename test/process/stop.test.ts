import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { expectPaid, paying, seedFor } from '../sipp/call-case.ts'
import { openPeer } from '../support/scripted-node.ts'
import { sdp } from '../support/sip-peer.ts'
import { callWith, SippNode } from '../support/sipp.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientNodes } from '../support/waiting.ts'

async function withOneNode(drainSeconds: number): Promise<TollgateProcess> {
  const node = await SippNode.start('nodes/answers.xml')
  onTestFinished(async () => void (await node.stop()))
  const tollgate = await TollgateProcess.start(seedFor([node.port]), {
    ...patientNodes,
    DRAIN_SECONDS: String(drainSeconds),
  })
  onTestFinished(() => tollgate.stop())
  return tollgate
}

/** Starts a call, waits until it is answered, and gives back how SIPp will judge it. */
async function startCall(tollgate: TollgateProcess, scenario: string) {
  const judged = callWith(scenario, tollgate.sipPort, { keys: { caller: paying } })
  await expect.poll(() => tollgate.openCalls()).toHaveLength(1)
  return { judged }
}

/** The final answer to an INVITE of its own. */
async function answerToInvite(port: number): Promise<string> {
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  onTestFinished(() => void socket.close())
  await once(socket, 'listening')
  const from = `127.0.0.1:${socket.address().port}`
  const invite = [
    `INVITE sip:18005551212@127.0.0.1:${port} SIP/2.0`,
    `Via: SIP/2.0/UDP ${from};branch=z9hG4bKdrained`,
    'Max-Forwards: 70',
    `From: <sip:${paying}@${from}>;tag=1`,
    `To: <sip:18005551212@127.0.0.1:${port}>`,
    'Call-ID: drained',
    'CSeq: 1 INVITE',
    `Contact: <sip:${from}>`,
    'Content-Length: 0',
  ]
  socket.send(`${invite.join('\r\n')}\r\n\r\n`, port, '127.0.0.1')
  for (;;) {
    const [answer] = await once(socket, 'message')
    if (!String(answer).startsWith('SIP/2.0 1')) return String(answer)
  }
}

const isDraining = async (tollgate: TollgateProcess): Promise<boolean> =>
  (await fetch(`http://127.0.0.1:${tollgate.apiPort}/readyz`)).status === 503

test('SIGTERM: new calls get 503 with Retry-After, live ones go on to their end and are charged', async () => {
  const tollgate = await withOneNode(20)
  const caller = await openPeer(tollgate)
  const plain = caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`)
  const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${paying}@`) }
  caller.request('INVITE', leg, { body: sdp('caller') })
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  const ended = tollgate.terminate()
  await expect.poll(() => isDraining(tollgate)).toBe(true)

  const answer = await answerToInvite(tollgate.sipPort)
  expect(answer).toMatch(/^SIP\/2\.0 503 /)
  expect(answer).toMatch(/\r\nRetry-After: \d+\r\n/)
  caller.request('BYE', leg)
  await caller.next('200 BYE')
  expect(await ended).toBe(0)
  const call = tollgate.calls().find(({ call_id: id }) => id === leg.callId)
  expect(call?.hangup_by).toBe('caller')
  expectPaid(call, 1)
})

test('DRAIN_SECONDS after SIGTERM the live calls get BYE, and their records are stored', async () => {
  const tollgate = await withOneNode(1)
  const { judged } = await startCall(tollgate, 'inbound/caller-is-hung-up.xml')
  expect(await tollgate.terminate()).toBe(0)
  expect(await judged).toEqual({ exitCode: 0, errors: '' })
  const [call] = tollgate.calls()
  expect(call).toMatchObject({ disposition: 'ANSWERED', hangup_by: 'system', is_recovered: 0 })
})

test('a second signal ends the live calls at once', async () => {
  const tollgate = await withOneNode(600)
  const { judged } = await startCall(tollgate, 'inbound/caller-is-hung-up.xml')
  const ended = tollgate.terminate()
  await expect.poll(() => isDraining(tollgate)).toBe(true)
  // Two that come together count as one: npm passes Ctrl-C on to a process that has had it already.
  const again = setInterval(() => process.kill(tollgate.pid, 'SIGTERM'), 400)
  expect(await ended).toBe(0)
  clearInterval(again)
  expect(await judged).toEqual({ exitCode: 0, errors: '' })
  expect(tollgate.calls()).toMatchObject([{ disposition: 'ANSWERED', hangup_by: 'system' }])
})
