import { expect, test } from 'vitest'
import { readConfig } from '../../../engine/config.ts'
import { UPGRADE_FORM, type FromNew, type FromOld } from '../../../engine/upgrade/messages.ts'
import { listeningOf, OldProcess } from '../../../engine/upgrade/old-process.ts'

const config = readConfig({
  SIP_LISTEN: 'udp/127.0.0.1:5060,tcp/127.0.0.1:5060',
  API_LISTEN: '127.0.0.1:8080',
  EDGE_LISTEN: '127.0.0.1:8081',
})

function begin(offer = { form: UPGRADE_FORM, listening: listeningOf(config) }) {
  const sent: FromNew[] = []
  let say: (message: FromOld) => void = () => undefined
  let end: () => void = () => undefined
  const link = {
    pid: 4711,
    send: (message: FromNew) => void sent.push(message),
    onMessage: (listener: typeof say) => void (say = listener),
    onEnd: (listener: (how: string) => void) => void (end = () => listener('has ended')),
    end: () => undefined,
  }
  const old = new OldProcess(link, offer)
  return { old, sent, say: (message: FromOld) => say(message), end: () => end() }
}

test('the sockets are taken in the order in which the old process listens', () => {
  const { sip, apiListen, edgeListen } = begin().old.withSockets(config)
  expect(sip.listen.map(({ descriptor }) => descriptor)).toEqual([4, 5])
  expect(apiListen).toEqual({ host: '127.0.0.1', port: 8080, descriptor: 6 })
  expect(edgeListen.descriptor).toBe(7)
})

test('other listeners, and another form of upgrade, are refused in one line', () => {
  const moved = { ...config, apiListen: { host: '127.0.0.1', port: 9 } }
  expect(() => begin().old.withSockets(moved)).toThrow(
    /^the settings listen on .*api\/127\.0\.0\.1:9, .*: stop the running process and start this one instead$/,
  )
  const { old } = begin({ form: UPGRADE_FORM + 1, listening: listeningOf(config) })
  expect(() => old.withSockets(config)).toThrow(/^the running version cannot hand over to this one/)
})

test('datagrams that come before they can be taken wait in their order', async () => {
  const { old, sent, say, end } = begin()
  const handedOver = old.handOver()
  expect(sent).toEqual([{ kind: 'loaded' }])
  say({ kind: 'handed over', held: [] })
  expect(await handedOver).toMatchObject({ held: [] })
  const datagrams = [1, 2, 3].map((port) => ({ listener: 0, address: 'a', port, data: '' }))
  for (const datagram of datagrams.slice(0, 2)) say({ kind: 'datagram', datagram })
  const got: unknown[] = []
  old.onDatagram((datagram) => got.push(datagram))
  for (const datagram of datagrams.slice(2)) say({ kind: 'datagram', datagram })
  expect(got).toEqual(datagrams)
  const left = old.serving(1, '2.0.0')
  end()
  await left
  expect(old.hasEnded).toBe(true)
})

test('an old process that ends before it hands over leaves nothing to take', async () => {
  const { old, end } = begin()
  const handedOver = old.handOver()
  end()
  await expect(handedOver).rejects.toThrow('the old process has ended')
})
