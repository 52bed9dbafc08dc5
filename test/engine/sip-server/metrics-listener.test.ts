import { afterEach, expect, test } from 'vitest'
import { CallTimes } from '../../../engine/sip-server/core/call-times.ts'
import { Traffic } from '../../../engine/sip-server/core/traffic.ts'
import { prometheusText } from '../../../engine/sip-server/metrics-listener.ts'
import { createSipServer, type SipServer } from '../../../engine/sip-server/index.ts'
import { SipPeer } from '../../support/sip-peer.ts'

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
  await peer.next(405)
  peer.close()
  const answer = await ask('/metrics')
  expect(answer.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8')
  const text = await answer.text()
  const lines = text.split('\n')
  expect(lines).toContain('# TYPE drachtio_sip_requests_in_total counter')
  expect(lines).toContain('drachtio_sip_requests_in_total{method="OPTIONS"} 2')
  expect(lines).toContain('drachtio_sip_requests_in_total{method="other"} 1')
  expect(lines).toContain('drachtio_sip_responses_out_total{method="OPTIONS",code="503"} 2')
  expect(lines).toContain('drachtio_sofia_msgs_recv 3')
  expect(lines).toContain('drachtio_sofia_requests_recv_total 3')
  expect(lines).toContain('drachtio_sofia_msgs_sent 3')
  expect(lines).toContain('drachtio_sofia_bad_msgs_recv 0')
  expect(lines).toContain('drachtio_stable_dialogs{type="inbound"} 0')
  expect(lines).toContain('drachtio_app_connections 0')
  expect(lines).toContain('drachtio_build_info{version="v0.9.99-tollgate"} 1')
  expect(lines).toContain('sip_server_admitted_ratio 1')
  const started = Number(/^drachtio_time_started (\d+)$/m.exec(text)?.[1])
  const now = (performance.timeOrigin + performance.now()) / 1_000
  expect(Math.abs(started - now)).toBeLessThan(600)
  for (const line of lines)
    expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"]*",?)+\})? [\d.]+|)$/)
})

test('durations are counted up to each bound, as Prometheus wants it', () => {
  const outbound = new CallTimes()
  for (const seconds of [0.5, 2.25, 2.5, 100]) {
    const call = { startedAt: 0, hasRung: false }
    outbound.responded(call, 180, seconds * 1_000)
  }
  const text = prometheusText({
    version: 'v',
    startedAt: 0,
    applications: 0,
    sizes: {},
    traffic: new Traffic(),
    callTimes: { inbound: new CallTimes(), outbound },
    dialogs: { inbound: 0, outbound: 0 },
    load: { lagMs: 0, share: 1, refused: 0 },
  })
  const of = (name: string) =>
    text
      .split('\n')
      .filter((line) => line.startsWith(name))
      .map((line) => line.slice(name.length))
  expect(of('drachtio_call_pdd_seconds_out')).toEqual([
    '_bucket{le="1"} 1',
    '_bucket{le="2"} 1',
    '_bucket{le="3"} 3',
    '_bucket{le="5"} 3',
    '_bucket{le="7"} 3',
    '_bucket{le="10"} 3',
    '_bucket{le="15"} 3',
    '_bucket{le="20"} 3',
    '_bucket{le="+Inf"} 4',
    '_sum 105.25',
    '_count 4',
  ])
  expect(of('drachtio_call_pdd_seconds_in_count')).toEqual([' 0'])
  expect(text).toContain('# TYPE drachtio_call_answer_seconds_in histogram\n')
})
