/**
 * A call as jambonz takes it: the server asks by HTTP what becomes of it, and hands it to an application
 * with the tag in the answer, which is on an unmodified drachtio-srf. REGISTER is asked with a POST.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createSipServer } from '../../../engine/sip-server/index.ts'
import { requestHandlers } from '../../../engine/sip-server/rules/request-handlers.ts'
import { SipPeer, sdp } from '../../support/sip-peer.ts'
import { connectByTcp, type Srf } from '../../support/srf.ts'
import { emitted } from '../../support/waiting.ts'

async function router(answerTo: (method: string, query: URLSearchParams) => unknown) {
  const http = createServer((question, response) => {
    const { searchParams } = new URL(question.url ?? '', 'http://h')
    question.resume().on('end', () => {
      const answer = answerTo(`${question.method} ${searchParams.get('method')}`, searchParams)
      response.setHeader('Content-Type', 'application/json')
      response.end(JSON.stringify(answer))
    })
  })
  http.listen(0, '127.0.0.1')
  await emitted(http, 'listening')
  onTestFinished(() => void http.close())
  return `http://127.0.0.1:${(http.address() as AddressInfo).port}`
}

test('request handler, then the tagged application, then a call', async () => {
  const asked: string[] = []
  const url = await router((method, query) => {
    asked.push(method)
    if (query.get('fromUser') === 'spam') return { action: 'reject', data: { status: 603 } }
    return { action: 'route', data: { tag: method === 'POST REGISTER' ? 'sbc' : 'feature-server' } }
  })
  const handlers = requestHandlers(
    [
      { sipMethod: 'REGISTER', httpMethod: 'post', url, verifies: false },
      { sipMethod: '*', httpMethod: 'get', url, verifies: false },
    ],
    () => undefined,
  )
  if (handlers === undefined) throw new Error('no handlers')
  onTestFinished(() => handlers.stop())
  const server = createSipServer({
    listen: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
    admin: { host: '127.0.0.1', port: 0 },
    secret: 'cymru',
    routeRequest: handlers.route,
  })
  await server.start()
  onTestFinished(() => server.stop())
  const [listener] = server.listeners
  if (listener === undefined) throw new Error('no listener')

  const connect = (tag: string, prepare: (srf: Srf) => void) =>
    connectByTcp(server, { tags: [tag] }, prepare)
  const sbc = await connect('sbc', (srf) => {
    srf.use('register', (_request, response) => response.send(200))
    srf.invite((_request, response) => response.send(500))
  })
  onTestFinished(() => sbc.close())
  const feature = await connect('feature-server', (srf) => {
    srf.use('register', (_request, response) => response.send(500))
    srf.invite((request, response) => {
      void srf.createUAS(request, response, { localSdp: request.body })
    })
  })
  onTestFinished(() => feature.close())

  const caller = await SipPeer.open(listener)
  onTestFinished(() => caller.close())
  const target = `sip:15551234567@127.0.0.1:${listener.port}`
  caller.request('REGISTER', caller.leg(target))
  await caller.next('200 REGISTER')
  const leg = caller.leg(target)
  caller.request('INVITE', leg, { body: sdp('mine') })
  const answer = await caller.next('200 INVITE')
  expect(answer.body).toBe(sdp('mine'))
  caller.learn(leg, answer)
  caller.request('ACK', leg)
  caller.request('BYE', leg)
  await caller.next('200 BYE')
  expect(asked).toEqual(['POST REGISTER', 'GET INVITE'])
})
