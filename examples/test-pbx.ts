/** A PBX that rings and answers, without sound; numbers that end in 9 are busy. */
import type Srf from 'drachtio-srf'

const RINGING_MS = 300

const silence = [
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=-',
  'c=IN IP4 127.0.0.1',
  't=0 0',
  'm=audio 40000 RTP/AVP 0',
  'a=rtpmap:0 PCMU/8000',
  '',
].join('\r\n')

export default function testPbx(srf: Srf): void {
  srf.use('options', (_request, response) => response.send(200))
  srf.invite((request, response) => {
    if (request.calledNumber.endsWith('9')) {
      response.send(486)
      return
    }
    response.send(180)
    const ringing = setTimeout(() => {
      // A caller that gives up at this moment is no error.
      srf.createUAS(request, response, { localSdp: silence }).catch(() => undefined)
    }, RINGING_MS)
    request.on('cancel', () => clearTimeout(ringing))
  })
}
