/** The example runs as it stands, in a process of its own. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { createSipServer } from '../../../engine/sip-server/index.ts'
import { SipPeer, sdp } from '../../support/sip-peer.ts'
import { Signal } from '../../support/waiting.ts'

test('the announcement answers a call, and hangs up by itself', async () => {
  const server = createSipServer({
    listen: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
    admin: { host: '127.0.0.1', port: 0 },
    secret: 'cymru',
  })
  await server.start()
  onTestFinished(() => server.stop())
  const { host, port } = server.adminAddress ?? { host: '', port: 0 }
  const words = ['engine/sip-server/example/announcement.mjs', host, String(port), 'cymru', '0.1']
  const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => void child.kill())
  const said: string[] = []
  const spoke = new Signal()
  createInterface({ input: child.stdout }).on('line', (line) => {
    said.push(line)
    spoke.fire()
  })
  await spoke.until(() => said.length > 0)
  expect(said[0]).toMatch(/^taking calls at udp\/127\.0\.0\.1:\d+$/)

  const [listener] = server.listeners
  if (listener === undefined) throw new Error('no listener')
  const caller = await SipPeer.open(listener)
  onTestFinished(() => caller.close())
  const leg = caller.leg(`sip:any@127.0.0.1:${listener.port}`)
  caller.request('INVITE', leg, { body: sdp('mine') })
  const answer = await caller.next('200 INVITE')
  expect(answer.body).toBe(sdp('mine'))
  caller.learn(leg, answer)
  caller.request('ACK', leg)
  caller.reply(await caller.next('BYE'), 200)
  await spoke.until(() => said.some((line) => line.endsWith('talks')))
})
