/**
 * A plain drachtio application, for this server or for drachtio-server. It answers
 * each call with the caller's own session description, and hangs up after some seconds.
 *
 *   npx tollgate sip-server --listen udp/127.0.0.1:5060 --admin 127.0.0.1:9022 --secret cymru
 *   node engine/sip-server/example/announcement.mjs 127.0.0.1 9022 cymru 30
 */
import Srf from 'drachtio-srf'

const [host = '127.0.0.1', port = '9022', secret = 'cymru', seconds = '30'] = process.argv.slice(2)
const srf = new Srf()

srf.on('connect', (error, hostPorts) => {
  if (error) throw error
  console.log(`taking calls at ${hostPorts}`)
})
srf.on('error', (error) => console.log('not connected:', error))
void srf.connect({ host, port: Number(port), secret })

srf.options((_request, response) => response.send(200))

srf.invite((request, response) => {
  srf
    .createUAS(request, response, { localSdp: request.body })
    .then(talk)
    .catch((error) => console.log('no call:', error))
})

function talk(dialog) {
  console.log(`${dialog.sip.callId} talks`)
  const hangUp = setTimeout(() => dialog.destroy(), Number(seconds) * 1_000)
  dialog.on('modify', (request, response) => response.send(200, { body: request.body }))
  dialog.on('destroy', () => {
    clearTimeout(hangUp)
    console.log(`${dialog.sip.callId} has hung up`)
  })
}
