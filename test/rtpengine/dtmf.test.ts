/** Digits between a party that sends RFC 4733 events and one that speaks SIP INFO, through a real relay. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { paying, seedFor } from '../sipp/call-case.ts'
import { Baresip } from '../support/baresip.ts'
import { freePort } from '../support/free-port.ts'
import { RtpEngine } from '../support/rtpengine.ts'
import { placeFor } from '../support/secure-node.ts'
import { sdp, SipPeer, type PeerMessage } from '../support/sip-peer.ts'
import { domain, passwordOf, twoPhones } from '../support/two-phones.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientNodes } from '../support/waiting.ts'

const seed = {
  ...twoPhones,
  extensions: twoPhones.extensions.map((row) => ({
    ...row,
    dtmf: row.extension === '101' ? 'rfc4733' : 'info',
  })),
}

test('events in RTP become INFO, also after a restart', async () => {
  const listen = `127.0.0.1:${await freePort()}`
  const relay = await RtpEngine.start({ words: [`--dtmf-log-dest=${listen}`] })
  onTestFinished(() => relay.stop())
  const settings = { RTPENGINE: relay.setting, MEDIA_DTMF_LISTEN: listen }
  const tollgate = await TollgateProcess.start(seed, settings, { isActivated: true })
  onTestFinished(() => tollgate.stop())
  const { sipPort } = tollgate
  const phone = async (user: '101' | '102'): Promise<Baresip> => {
    const account = { user, domain, sipPort, password: passwordOf(user) }
    const started = await Baresip.start(account)
    onTestFinished(() => started.stop())
    await started.registered()
    return started
  }
  const [rtp, info] = [await phone('101'), await phone('102')]
  await rtp.command('dial', `sip:102@${domain}`)
  await rtp.next('CALL_ESTABLISHED')
  await Promise.all([rtp.hears(440), info.hears(440)])
  const press = async (...digits: readonly string[]): Promise<void> => {
    for (const digit of digits) {
      await rtp.command('sndcode', digit)
      expect(await info.next('CALL_DTMF_START')).toMatchObject({ param: digit })
      await info.next('CALL_DTMF_END')
    }
  }
  await press('5', '#', '5')
  expect(rtp.events.filter(({ type }) => type === 'CALL_DTMF_START')).toEqual([])
  await tollgate.restartInOrder()
  await press('1', '2', '3', '4', '5', '6', '7', '8', '9', '0', '*', '#')

  await rtp.command('hangup')
  await info.next('CALL_CLOSED')
  await relay.idle()
  expect(tollgate.faults).toEqual([])
})

/** RTP of one party on its own socket: silence in PCMU, and what has come. */
async function mediaSocket() {
  const socket = createSocket('udp4')
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const packets: Buffer[] = []
  socket.on('message', (packet) => packets.push(packet))
  let timer: NodeJS.Timeout | undefined
  onTestFinished(() => {
    clearInterval(timer)
    socket.close()
  })
  const packet = Buffer.alloc(172, 0xff)
  packet.writeUInt16BE(0x80_00)
  packet.writeUInt32BE(1_234, 8)
  let count = 0
  const speakTo = (port: number): void => {
    timer = setInterval(() => {
      packet.writeUInt16BE(++count, 2)
      packet.writeUInt32BE(count * 160, 4)
      socket.send(packet, port, '127.0.0.1')
    }, 20)
  }
  return { port: socket.address().port, packets, speakTo }
}

const portIn = ({ body }: PeerMessage): number => Number(/^m=audio (\d+)/m.exec(body)?.[1])

test('INFO becomes events in the RTP of a party that takes them, and does not come back', async () => {
  const listen = `127.0.0.1:${await freePort()}`
  const relay = await RtpEngine.start({ words: [`--dtmf-log-dest=${listen}`] })
  onTestFinished(() => relay.stop())
  const node = await SipPeer.openPatient(placeFor('udp'))
  onTestFinished(() => node.close())
  const tollgate = await TollgateProcess.start(
    {
      ...seedFor([node.port]),
      dispatcher: [
        {
          endpoint_name: 'pbx',
          set_id: 1,
          algorithm: 8,
          dtmf: 'rfc4733',
          nodes: [{ host: '127.0.0.1', internal_port: node.port }],
        },
      ],
    },
    // The node does not answer OPTIONS.
    { ...patientNodes, RTPENGINE: relay.setting, MEDIA_DTMF_LISTEN: listen },
  )
  onTestFinished(() => tollgate.stop())
  const caller = await SipPeer.openPatient(tollgate.listener())
  onTestFinished(() => caller.close())
  const [said, heard] = [await mediaSocket(), await mediaSocket()]
  const leg = {
    ...caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`),
    from: `<sip:${paying}@127.0.0.1:${caller.port}>;tag=caller`,
  }
  caller.request('INVITE', leg, { body: sdp('caller', said.port) })
  const invite = await node.next('INVITE')
  const events = Number(/^a=rtpmap:(\d+) telephone-event\/8000/m.exec(invite.body)?.[1])
  const answer = sdp('node', heard.port).replace(' RTP/AVP 0', ` RTP/AVP 0 ${events}`)
  const body = `${answer}a=rtpmap:${events} telephone-event/8000\r\n`
  node.reply(invite, 200, { tag: 'node', body })
  const ok = await caller.next('200 INVITE')
  caller.learn(leg, ok)
  caller.request('ACK', leg)
  await node.next('ACK')
  said.speakTo(portIn(ok))
  await expect.poll(() => heard.packets.length).toBeGreaterThan(5)

  const info = { contentType: 'application/dtmf-relay', body: 'Signal=5\r\nDuration=200\r\n' }
  caller.request('INFO', leg, info)
  await caller.next('200 INFO')
  // RFC 4733 §2.3: the event, its end, its volume and its duration.
  const ends = () =>
    heard.packets
      .filter((packet) => (packet.readUInt8(1) & 0x7f) === events && packet.readUInt8(13) >= 0x80)
      .map((packet) => [packet.readUInt8(12), packet.readUInt16BE(14) / 8])
  // 200 ms, and the packet that ends it.
  await expect.poll(ends).toContainEqual([5, 220])
  const isInfo = (message: PeerMessage): boolean => message.method === 'INFO'
  expect([...caller.inbox, ...node.inbox].filter(isInfo)).toEqual([])

  caller.request('BYE', leg)
  node.reply(await node.next('BYE'), 200)
  await caller.next('200 BYE')
  await relay.idle()
  expect(tollgate.faults).toEqual([])
})
