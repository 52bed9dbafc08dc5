/**
 * Announcement: calls to ANNOUNCEMENT_NUMBER are answered, hear a file, and are hung up; all others
 * go on. `ffmpeg -i words.wav -ar 8000 -ac 1 -f mulaw words.ulaw` makes the file (G.711 µ-law).
 * Callers get it from ANNOUNCEMENT_ADDRESS, an IPv4 address of this machine that they can reach.
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'
import type Srf from 'drachtio-srf'

const { ANNOUNCEMENT_NUMBER: number = '100', ANNOUNCEMENT_ADDRESS: own = '127.0.0.1' } = process.env
const sound = readFileSync(process.env.ANNOUNCEMENT_FILE ?? 'words.ulaw').subarray(0, 480_000)
const listeners = new Set<Socket>()

async function announce(srf: Srf, req: Srf.SrfRequest, res: Srf.SrfResponse, socket: Socket) {
  const [, host, port] = /^c=IN IP4 ([\d.]+)[^]*^m=audio (\d+)/m.exec(req.body) ?? []
  if (host === undefined) return res.send(488)
  await once(socket.bind(0, own), 'listening')
  const media = `t=0 0\r\nm=audio ${socket.address().port} RTP/AVP 0\r\na=sendonly\r\n`
  const localSdp = `v=0\r\no=- 1 1 IN IP4 ${own}\r\ns=-\r\nc=IN IP4 ${own}\r\n${media}`
  const dialog = await srf.createUAS(req, res, { localSdp })
  dialog.on('destroy', () => listeners.delete(socket))
  const start = performance.now()
  for (let at = 0; at < sound.length && listeners.has(socket); at += 160) {
    const head = [0x80, 0, at / 40_960, at / 160, 0, at / 65_536, at / 256, at, 0, 0, 0, 1]
    socket.send([Buffer.from(head), sound.subarray(at, at + 160)], Number(port), host)
    await wait(start + at / 8 + 20 - performance.now())
  }
  if (listeners.has(socket)) dialog.destroy()
}

export default (srf: Srf): void =>
  srf.use('invite', (req, res, next) => {
    if (req.calledNumber !== number || listeners.size >= 200) return void next()
    const socket = createSocket('udp4')
    listeners.add(socket)
    const leave = () => listeners.delete(socket) && socket.close()
    return announce(srf, req, res, socket).finally(leave)
  })
