import { afterEach, expect, test } from 'vitest'
import { createSipServer, type SipServer } from '../../../../engine/sip-server/index.ts'
import { SipPeer } from '../../../support/sip-peer.ts'

let server: SipServer

afterEach(() => server.stop())

async function start(): Promise<SipPeer> {
  server = createSipServer({
    listen: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
    metrics: { host: '127.0.0.1', port: 0 },
    secret: 'cymru',
  })
  await server.start()
  const [listener] = server.listeners
  if (listener === undefined) throw new Error('no listener')
  return SipPeer.open(listener)
}

const ask = (path: string, method = 'GET'): Promise<Response> =>
  fetch(`http://127.0.0.1:${server.metricsAddress?.port}${path}`, { method })

test('Prometheus is told what came, what left and what there is, by the field’s names', async () => {
  const peer = await start()
  for (let i = 0; i < 2; i++) {
    peer.request('OPTIONS', peer.leg('sip:a@127.0.0.1'))
    await peer.next(503)
  }
  peer.request('DANCE', peer.leg('sip:a@127.0.0.1'))
  await peer.next(501)
  peer.close()
  const answer = await ask('/metrics')
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const text = await answer.text()
  const lines = text.split('\n')
  expect(lines).toContain('# TYPE drachtio_sip_requests_in_total counter')
  expect(lines).toContain('drachtio_sip_requests_in_total{method="OPTIONS"} 2')
  expect(lines).toContain('drachtio_sip_requests_in_total{method="other"} 1')
  expect(lines).toContain('drachtio_sip_responses_out_total{method="OPTIONS",code="503"} 2')
  expect(lines).toContain('drachtio_stable_dialogs{type="inbound"} 0')
  expect(lines).toContain('drachtio_app_connections 0')
  expect(lines).toContain('drachtio_build_info{version="v0.9.99-tollgate"} 1')
  expect(lines).toContain('sip_server_admitted_ratio 1')
  const started = Number(/^drachtio_time_started (\d+)$/m.exec(text)?.[1])
  expect(Math.abs(started - performance.timeOrigin / 1_000)).toBeLessThan(600)
  for (const line of lines)
    expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"]*",?)+\})? [\d.]+|)$/)
})

test('nothing else is served there', async () => {
  const peer = await start()
  peer.close()
  expect((await ask('/')).status).toBe(404)
  expect((await ask('/metrics', 'POST')).status).toBe(404)
  const head = await ask('/metrics', 'HEAD')
  expect([head.status, await head.text()]).toEqual([200, ''])
})
