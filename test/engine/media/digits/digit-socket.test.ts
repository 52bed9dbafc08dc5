import { createSocket } from 'node:dgram'
import { expect, onTestFinished, test } from 'vitest'
import { openDigitSocket } from '../../../../engine/media/digits/heard-digits.ts'
import { freePort } from '../../../support/free-port.ts'

test('of two processes, the one that came last hears; the other again when that has ended', async () => {
  const place = { host: '127.0.0.1', port: await freePort() }
  const heard: string[] = []
  const open = (name: string) =>
    openDigitSocket(
      place,
      (datagram, source) => void heard.push(`${name} ${source} ${String(datagram)}`),
    )
  const sender = createSocket('udp4')
  onTestFinished(() => void sender.close())
  const send = () => sender.send('digit', place.port, place.host)
  const old = await open('old')
  onTestFinished(() => void old.close())
  send()
  await expect.poll(() => heard).toEqual(['old 127.0.0.1 digit'])
  const fresh = await open('new')
  send()
  await expect.poll(() => heard.slice(1)).toEqual(['new 127.0.0.1 digit'])
  await new Promise<void>((resolve) => void fresh.close(() => resolve()))
  send()
  await expect.poll(() => heard.slice(2)).toEqual(['old 127.0.0.1 digit'])
})

test('a port that cannot be bound is told', async () => {
  const open = openDigitSocket({ host: '192.0.2.1', port: 9 }, () => undefined)
  await expect(open).rejects.toMatchObject({ code: 'EADDRNOTAVAIL' })
})
