/** A supervisor's phone joins a call of a PBX that lets it in: the PBX is a peer that says what it gets. */
import { expect, onTestFinished, test } from 'vitest'
import { paying, seedFor } from '../sipp/call-case.ts'
import { Baresip } from '../support/baresip.ts'
import { sdp, SipPeer } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, patientNodes } from '../support/waiting.ts'

const domain = 'acme.example'

async function start() {
  const nowhere = { address: '127.0.0.1', advertisedHost: '127.0.0.1', advertisedPort: 9 }
  const pbx = await SipPeer.openPatient({ protocol: 'udp', port: 9, ...nowhere })
  const over = new AbortController()
  onTestFinished(() => {
    over.abort()
    pbx.close()
  })
  void answerProbes(pbx, over.signal)
  const seed = seedFor([pbx.port])
  const tollgate = await TollgateProcess.start(
    {
      ...seed,
      dispatcher: seed.dispatcher.map((set) => ({
        ...set,
        spy_uri: 'sip:spy.{mode}.{side}.{call_uuid}@{node}',
      })),
      tenants: [{ slug: 'acme', domains: [domain] }],
      extensions: [
        { tenant: 'acme', extension: '900', password: 'secret-900', display_name: 'Supervisor' },
      ],
    },
    patientNodes,
  )
  onTestFinished(() => tollgate.stop())
  const { sipPort } = tollgate
  const phone = await Baresip.start({ user: '900', domain, sipPort, password: 'secret-900' })
  onTestFinished(() => phone.stop())
  await phone.registered()
  return { pbx, tollgate, phone }
}

/** Until the test is over: while Tollgate starts, none may come for a long time. */
async function answerProbes(pbx: SipPeer, over: AbortSignal): Promise<void> {
  while (!over.aborted)
    await pbx.next('OPTIONS').then(
      (probe) => pbx.reply(probe, 200, { tag: 'probed' }),
      () => undefined,
    )
}

test('a supervisor is rung, let into the call by its PBX, and put down when the call ends', async () => {
  const { pbx, tollgate, phone } = await start()
  const token = await tollgate.createKey('--name', 'desk', '--scopes', 'calls:spy,calls:read')
  const api = async (path: string, body?: object): Promise<Record<string, unknown>> => {
    const response = await fetch(`http://127.0.0.1:${tollgate.apiPort}${path}`, {
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    })
    return { ...((await response.json()) as object), status: response.status }
  }
  const caller = await SipPeer.openPatient(tollgate.listener())
  onTestFinished(() => caller.close())
  const uri = `sip:18005551212@127.0.0.1:${tollgate.sipPort}`
  const leg = { ...caller.leg(uri), from: `<sip:${paying}@outside.example>;tag=a` }
  caller.request('INVITE', leg, { body: sdp('offer') })
  const invite = await pbx.next('INVITE')
  const uuid = invite.get('X-Call-UUID')
  pbx.reply(invite, 200, { tag: 'b', body: sdp('answer') })
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  await pbx.next('ACK')

  const body = { call_uuid: uuid, supervisor_extension: '900', mode: 'listen' }
  const started = await api('/telephony/spy', body)
  expect(started).toMatchObject({ status: 201, data: { call_uuid: uuid, mode: 'listen' } })
  const { spy_uuid: spyUuid } = started['data'] as { spy_uuid: string }
  // The phone picks up by itself.
  const entrance = await pbx.next('INVITE')
  expect(entrance.uri).toBe(`sip:spy.listen.both.${uuid}@127.0.0.1:${pbx.port}`)
  expect(entrance.body).toContain('m=audio')
  pbx.reply(entrance, 200, { tag: 'mix', body: sdp('mix') })
  await phone.next('CALL_ESTABLISHED')
  await eventually(async () =>
    expect(await api(`/api/v1/pbx/calls/${spyUuid}`)).toMatchObject({
      data: { status: 'answered', destination_number: `spy:${uuid}` },
    }),
  )

  caller.request('BYE', leg)
  await caller.next('200 BYE')
  await phone.next('CALL_CLOSED')
  for (const _call of ['the call', 'the supervisor’s']) pbx.reply(await pbx.next('BYE'), 200)
  const records = await tollgate.waitForCalls(2)
  expect(records.find((record) => record.call_uuid === spyUuid)).toMatchObject({
    direction: 'internal',
    cost_micros: 0,
    caller_id_number: '900',
    denial_code: 'spied_call_ended',
    hangup_by: 'system',
    disposition: 'ANSWERED',
  })
  expect(tollgate.wallet('paying').debits).toBe(1)
  expect(tollgate.faults).toEqual([])
})
