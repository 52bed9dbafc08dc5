/**
 * The example that forwards calls to several nodes, on a server that speaks drachtio-server's
 * protocol.
 */
import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { requestOf } from '../support/sip-core.ts'
import { sdp, type SipPeer } from '../support/sip-peer.ts'
import { SipServerProgram } from '../support/sip-server-program.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { eventually } from '../support/waiting.ts'

/** The application with the places of this test. */
function applicationFor(admin: { readonly port: number }, nodes: readonly SipPeer[]): string {
  const application = readFileSync('engine/sip-server/example/balancer.mjs', 'utf8')
  const places = nodes.map(({ port }) => `'sip:127.0.0.1:${port}'`).join(', ')
  return application
    .replace("'drachtio-srf'", `'${createRequire(import.meta.url).resolve('drachtio-srf')}'`)
    .replace('9022', String(admin.port))
    .replace(/const nodes = \[.*\]/, `const nodes = [${places}]`)
    .replace(/const callers = \[.*\]/, `const callers = ['127.0.0.1']`)
}

test('calls take turns over the nodes that answer, and requests in dialogs follow them', async () => {
  const front = await SipServerProgram.start(
    '--listen udp/127.0.0.1:0 --admin 127.0.0.1:0 --secret cymru',
  )
  const nodes = [await front.peer(), await front.peer()] as const
  for (const node of nodes) node.always('OPTIONS', 200, { tag: 'o' })
  const file = join(temporaryFolder(), 'balancer.mjs')
  writeFileSync(file, applicationFor(front.place('admin'), nodes))
  const application = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void application.kill())
  await new Promise((resolve, reject) => {
    application.stdout.once('data', resolve)
    application.once('exit', () => reject(new Error('the application has ended')))
  })

  const caller = await front.peer()
  /** Called by its number; resolves when the node has its BYE. */
  const callAt = async (node: SipPeer, number: string): Promise<void> => {
    const begun = caller.leg(front.uri(number))
    caller.request('INVITE', begun, { body: sdp('caller') })
    const invite = await node.next('INVITE')
    expect(invite.uri).toBe(`sip:${number}@127.0.0.1:${node.port}`)
    const headers = invite.all('Record-Route').map((value) => `Record-Route: ${value}`)
    node.reply(invite, 200, { tag: 'b', body: sdp('node'), headers })
    const answer = await caller.next('200 INVITE')
    caller.learn(begun, answer)
    const leg = { ...begun, routes: answer.all('Record-Route').toReversed() }
    caller.request('ACK', leg)
    await node.next('ACK')
    caller.request('BYE', leg)
    node.reply(await node.next('BYE'), 200)
    await caller.next('200 BYE')
  }
  expect(await strangerAt(front.port('udp'))).toMatch(/^SIP\/2\.0 403 /)
  await callAt(nodes[0], '1001')
  await callAt(nodes[1], '1002')
  await callAt(nodes[0], '1003')

  /** The node that gets the next call, and refuses it. */
  const next = async (): Promise<SipPeer | undefined> => {
    const other = await front.peer()
    other.request('INVITE', other.leg(front.uri('1004')), { body: sdp('caller') })
    const isAsked = ({ inbox }: SipPeer): boolean => inbox.some(({ method }) => method === 'INVITE')
    await eventually(() => expect(nodes.some(isAsked)).toBe(true))
    const node = nodes.find(isAsked)
    if (node) node.reply(await node.next('INVITE'), 486, { tag: 'b' })
    await other.next('486 INVITE')
    return node
  }
  nodes[1].always('OPTIONS', 503, { tag: 'o' })
  await eventually(async () => expect([await next(), await next()]).toEqual([nodes[0], nodes[0]]))
  nodes[1].always('OPTIONS', 200, { tag: 'o' })
  await eventually(async () => expect([await next(), await next()]).toContain(nodes[1]))
})

/** The final answer to the INVITE of an address that is none of the callers. */
async function strangerAt(port: number): Promise<string> {
  const socket = createSocket('udp4')
  onTestFinished(() => void socket.close())
  await new Promise<void>((resolve) => void socket.bind(0, '127.0.0.2', resolve))
  const via = `SIP/2.0/UDP 127.0.0.2:${socket.address().port};branch=z9hG4bKstranger`
  const answered = new Promise<string>((resolve) => {
    socket.on('message', (bytes) => {
      if (!bytes.toString().startsWith('SIP/2.0 1')) resolve(bytes.toString())
    })
  })
  const uri = `sip:1000@127.0.0.1:${port}`
  socket.send(requestOf('INVITE', { uri, via }), port, '127.0.0.1')
  return answered
}
