/** What becomes of a call over TCP when its process crashes or is restarted: a connection does not move. */
import { expect, onTestFinished, test } from 'vitest'
import { DigestPhone } from '../support/digest-phone.ts'
import { sdp, type Leg } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { domain, passwordOf, threePhones } from '../support/two-phones.ts'

/** Where nothing listens: behind NAT a phone is reached by the connection that it has opened itself. */
const unreachable = 'sip:101@127.0.0.1:9;transport=tcp'

async function openPhone(
  tollgate: TollgateProcess,
  user: string,
  protocol: 'udp' | 'tcp',
): Promise<DigestPhone> {
  const account = { user, domain, password: passwordOf(user) }
  const phone = await DigestPhone.open(tollgate.listener(protocol), account)
  onTestFinished(() => phone.close())
  if (protocol === 'tcp') phone.peer.contact = unreachable
  await register(phone)
  return phone
}

async function register(phone: DigestPhone): Promise<void> {
  phone.learn(await phone.register())
  const credentials = phone.credentials('REGISTER')
  expect((await phone.register([`Authorization: ${credentials}`])).status).toBe(200)
}

/** Phone 101, by TCP, talks to 102. */
async function talking({ isActivated = false } = {}) {
  const tollgate = await TollgateProcess.start(threePhones, {}, { isActivated })
  onTestFinished(() => tollgate.stop())
  const one = await openPhone(tollgate, '101', 'tcp')
  const two = await openPhone(tollgate, '102', 'udp')
  const leg = await one.call('102')
  const invite = await two.peer.next('INVITE')
  two.peer.reply(invite, 200, { tag: 'two', body: sdp('two') })
  const ok = await one.answerTo(leg)
  one.peer.learn(leg, ok)
  one.peer.request('ACK', leg)
  await two.peer.next('ACK')
  const legOfTwo: Leg = two.peer.calledLeg(invite, 'two')
  return { tollgate, one, two, leg, legOfTwo }
}

type Talk = Awaited<ReturnType<typeof talking>>

/** Phone 102 changes the session, and 101 hangs up. */
async function changeAndEnd({ one, two, leg, legOfTwo }: Talk): Promise<void> {
  two.peer.request('INVITE', legOfTwo, { body: sdp('two again') })
  one.peer.reply(await one.peer.next('INVITE'), 200, { body: sdp('one') })
  await two.peer.next('200 INVITE')
  two.peer.request('ACK', legOfTwo)
  await one.peer.next('ACK')
  one.peer.request('BYE', leg)
  two.peer.reply(await two.peer.next('BYE'), 200)
  await one.peer.next('200 BYE')
}

const ended = { disposition: 'ANSWERED', is_recovered: 0, hangup_by: 'caller' }

test('a phone behind NAT that registers again has its call back: both can change and end it', async () => {
  const talk = await talking()
  const { tollgate, one } = talk
  await tollgate.kill()
  await tollgate.restart()
  await register(one)
  await changeAndEnd(talk)
  expect(await tollgate.waitForCalls(1)).toMatchObject([ended])
  expect(tollgate.faults).toEqual([])
})

test('a restart on the same sockets: the phone has its call back when it registers again', async () => {
  const talk = await talking({ isActivated: true })
  const { tollgate, one } = talk
  await tollgate.restartInOrder()
  await register(one)
  await changeAndEnd(talk)
  expect(await tollgate.waitForCalls(1)).toMatchObject([ended])
  expect(tollgate.faults).toEqual([])
})
