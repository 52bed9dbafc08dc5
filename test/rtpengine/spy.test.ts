/** A supervisor listens to a call of two phones, which no PBX has: the relay lets it hear both, or one. */
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { Baresip } from '../support/baresip.ts'
import { BrowserPhone } from '../support/browser-phone.ts'
import { Authority, loopbackNames } from '../support/certificates.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { domain, passwordOf, threePhones } from '../support/two-phones.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually } from '../support/waiting.ts'

const tones = { '101': 500, '102': 800, '103': 1_300 } as const

const { certFile, keyFile } = new Authority(temporaryFolder()).sign('tollgate', ...loopbackNames)

let relay: RtpEngine
let tollgate: TollgateProcess
let token: string

beforeEach(async () => {
  relay = await RtpEngine.start()
  onTestFinished(() => relay.stop())
})

async function serve(policy: 'anchor' | 'bypass'): Promise<void> {
  tollgate = await TollgateProcess.start(threePhones, {
    DRAIN_SECONDS: '0',
    RTPENGINE: relay.setting,
    MEDIA_POLICY: policy,
    SIP_TLS_CERT: certFile,
    SIP_TLS_KEY: keyFile,
  })
  onTestFinished(() => tollgate.stop())
  token = await tollgate.createKey('--name', 'desk', '--scopes', '*')
}

async function start(policy: 'anchor' | 'bypass'): Promise<Baresip[]> {
  await serve(policy)
  const { sipPort } = tollgate
  return Promise.all(
    Object.entries(tones).map(async ([user, toneHz]) => {
      const password = passwordOf(user)
      const phone = await Baresip.start({ user, domain, sipPort, password, toneHz })
      onTestFinished(() => phone.stop())
      await phone.registered()
      return phone
    }),
  )
}

interface Answer {
  readonly code?: string
  readonly data?: { readonly spy_uuid: string }
}

async function api(path: string, body?: object): Promise<{ status: number } & Answer> {
  const response = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  })
  return { ...((await response.json()) as Answer), status: response.status }
}

/** The uuid of the call, once it is up. */
async function talk(caller: Baresip): Promise<string> {
  await caller.command('dial', `sip:102@${domain}`)
  await caller.next('CALL_ESTABLISHED')
  return openCall()
}

const openCall = (): Promise<string> =>
  eventually(() => {
    const [call] = tollgate.openCalls()
    if (call === undefined) throw new Error('no call is open')
    return call.call_uuid
  })

const spy = (call_uuid: string, more: object = {}) =>
  api('/telephony/spy', { call_uuid, supervisor_extension: '103', mode: 'listen', ...more })

test('a supervisor hears both parties and is not heard, and its call ends with theirs', async () => {
  const [caller, callee, supervisor] = await start('anchor')
  if (!caller || !callee || !supervisor) throw new Error('no phones')
  const uuid = await talk(caller)
  await Promise.all([caller.hears(800), callee.hears(500)])

  expect(await spy(uuid)).toMatchObject({ status: 201 })
  await supervisor.next('CALL_ESTABLISHED')
  await supervisor.hears(500, 800)
  await Promise.all([caller.hears(800), callee.hears(500)])
  await Promise.all([caller.hearsNone(1_300), callee.hearsNone(1_300)])

  // What the parties do is heard, too: they are not offered anything again.
  await caller.command('hold')
  await callee.hearsNone(500)
  await caller.command('resume')
  await supervisor.hears(500, 800)

  await caller.command('hangup')
  await supervisor.next('CALL_CLOSED')
  const records = await tollgate.waitForCalls(2)
  expect(
    records.find(({ destination_number }) => destination_number === `spy:${uuid}`),
  ).toMatchObject({
    disposition: 'ANSWERED',
    denial_code: 'spied_call_ended',
    direction: 'internal',
  })
  await relay.idle()
  expect(tollgate.faults).toEqual([])
})

test('a supervisor hears one party alone, holds, and leaves; the call goes on', async () => {
  const [caller, callee, supervisor] = await start('anchor')
  if (!caller || !callee || !supervisor) throw new Error('no phones')
  const uuid = await talk(caller)
  expect(await spy(uuid, { side: 'callee' })).toMatchObject({ status: 201 })
  await supervisor.next('CALL_ESTABLISHED')
  await supervisor.hears(800)
  await supervisor.hearsNone(500)
  await supervisor.command('hold')
  await supervisor.hearsNone(800)
  await supervisor.command('resume')
  await supervisor.hearsMore()
  await supervisor.command('hangup')
  await tollgate.waitForCalls(1)
  await Promise.all([caller.hears(800), callee.hears(500)])
  await callee.command('hangup')
  await tollgate.waitForCalls(2)
  await relay.idle()
  const audits = tollgate.query("SELECT id FROM audit_entry WHERE action LIKE '%/telephony/spy'")
  expect(audits).toHaveLength(1)
  expect(tollgate.faults).toEqual([])
})

test('a browser hears two browsers, which speak Opus', async () => {
  await serve('anchor')
  const server = `wss://127.0.0.1:${tollgate.wssPort}`
  const [caller, callee, supervisor] = await Promise.all(
    Object.entries(tones).map(async ([user, toneHz]) => {
      const phone = await BrowserPhone.start({ toneHz })
      onTestFinished(() => phone.stop())
      await phone.register({ server, user, domain, password: passwordOf(user) })
      return phone
    }),
  )
  if (!caller || !callee || !supervisor) throw new Error('no phones')
  await Promise.all([caller.call(`sip:102@${domain}`), callee.answer()])
  const uuid = await openCall()
  expect(await spy(uuid)).toMatchObject({ status: 201 })
  await supervisor.answer()
  await supervisor.hears(500, 800)
  await Promise.all([caller.hearsNone(1_300), callee.hearsNone(1_300)])
  await caller.hangUp()
  await supervisor.over()
  await tollgate.waitForCalls(2)
  await relay.idle()
  expect(tollgate.faults).toEqual([])
})

test('a supervisor who listens while the process is killed is put down by the next one; the call goes on, and may be listened to again', async () => {
  const [caller, callee, supervisor] = await start('anchor')
  if (!caller || !callee || !supervisor) throw new Error('no phones')
  const uuid = await talk(caller)
  await Promise.all([caller.hears(800), callee.hears(500)])
  await spy(uuid)
  await supervisor.next('CALL_ESTABLISHED')
  await supervisor.hears(500, 800)

  await tollgate.kill()
  await Promise.all([caller.hearsMore(), callee.hearsMore()])
  await tollgate.restart()
  await supervisor.next('CALL_CLOSED')
  await Promise.all([caller.hears(800), callee.hears(500)])
  expect(await spy(uuid)).toMatchObject({ status: 201 })
  await supervisor.next('CALL_ESTABLISHED')
  await supervisor.hears(500, 800)

  await caller.command('hangup')
  await Promise.all([callee.next('CALL_CLOSED'), supervisor.next('CALL_CLOSED')])
  const records = await tollgate.waitForCalls(3)
  const supervised = records.filter((record) => record.destination_number === `spy:${uuid}`)
  expect(supervised).toHaveLength(2)
  for (const record of records)
    expect(record).toMatchObject({ disposition: 'ANSWERED', is_recovered: 0 })
  await relay.idle()
  expect(tollgate.faults).toEqual([])
})

test('a call that passes no relay cannot be listened to, and is not touched', async () => {
  const [caller] = await start('bypass')
  if (!caller) throw new Error('no phones')
  const uuid = await talk(caller)
  expect(await spy(uuid)).toMatchObject({ status: 501, code: 'spy_mode_unavailable' })
  expect(await spy(uuid, { mode: 'barge' })).toMatchObject({ status: 501 })
  await caller.command('hangup')
  await tollgate.waitForCalls(1)
})
