/**
 * A supervisor listens to a call of two phones, which no PBX has: the relay lets it hear both, or
 * one.
 */
import { expect, onTestFinished, test } from 'vitest'
import { Baresip } from '../support/baresip.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { domain, passwordOf, threePhones } from '../support/two-phones.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually } from '../support/waiting.ts'

const tones = { '101': 500, '102': 800, '103': 1_300 } as const

let relay: RtpEngine
let tollgate: TollgateProcess
let token: string

async function start(): Promise<Baresip[]> {
  relay = await RtpEngine.start()
  onTestFinished(() => relay.stop())
  const settings = { RTPENGINE: relay.setting, MEDIA_POLICY: 'anchor' }
  tollgate = await TollgateProcess.start(threePhones, settings)
  onTestFinished(() => tollgate.stop())
  token = await tollgate.createKey('--name', 'desk', '--scopes', '*')
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

async function api(path: string, body: object): Promise<{ status: number } & Answer> {
  const response = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    method: 'POST',
    body: JSON.stringify(body),
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

const spy = (call_uuid: string) =>
  api('/telephony/spy', { call_uuid, supervisor_extension: '103', mode: 'listen' })

test('a supervisor hears both parties and is not heard, and its call ends with theirs', async () => {
  const [caller, callee, supervisor] = await start()
  if (!caller || !callee || !supervisor) throw new Error('no phones')
  const uuid = await talk(caller)
  await Promise.all([caller.hears(800), callee.hears(500)])

  expect(await spy(uuid)).toMatchObject({ status: 201 })
  await supervisor.next('CALL_ESTABLISHED')
  await supervisor.hears(500, 800)
  await Promise.all([caller.hears(800), callee.hears(500)])
  await Promise.all([caller.hearsNone(1_300), callee.hearsNone(1_300)])

  // The actions of the parties are heard, too: they are not offered anything again.
  await caller.command('hold')
  await callee.hearsNone(500)
  await caller.command('resume')
  await supervisor.hears(500, 800)

  await caller.command('hangup')
  await supervisor.next('CALL_CLOSED')
  await tollgate.waitForCalls(2)
  await relay.idle()
  expect(tollgate.faults).toEqual([])
})

test('a crash puts the supervisor down; the call goes on, and may be listened to again', async () => {
  const [caller, callee, supervisor] = await start()
  if (!caller || !callee || !supervisor) throw new Error('no phones')
  const uuid = await talk(caller)
  await Promise.all([caller.hears(800), callee.hears(500)])
  expect(await spy(uuid)).toMatchObject({ status: 201 })
  await supervisor.next('CALL_ESTABLISHED')
  await supervisor.hears(500, 800)

  await tollgate.kill()
  await Promise.all([caller.hearsMore(), callee.hearsMore()])
  await tollgate.restart()
  await supervisor.next('CALL_CLOSED')
  expect(await spy(uuid)).toMatchObject({ status: 201 })
  await supervisor.next('CALL_ESTABLISHED')

  await caller.command('hangup')
  await supervisor.next('CALL_CLOSED')
  const records = await tollgate.waitForCalls(3)
  expect(
    records.findLast(({ destination_number }) => destination_number === `spy:${uuid}`),
  ).toMatchObject({
    disposition: 'ANSWERED',
    denial_code: 'spied_call_ended',
    direction: 'internal',
  })
  await relay.idle()
  expect(tollgate.faults).toEqual([])
})
