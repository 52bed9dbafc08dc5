/** A drachtio application that bridges each call to one place. `node b2bua.mjs HOST PORT SECRET URI` prints `ready`. */
import Srf from 'drachtio-srf'

const [host, port, secret, uri] = process.argv.slice(2)
const srf = new Srf()

srf.invite((request, response) => {
  srf
    .createB2BUA(request, response, uri, { localSdpB: request.body })
    .then(bridge)
    // A caller that has given up, or a callee that refuses: the library has answered.
    .catch((error) => error.status ?? console.error(error.message))
})

function bridge({ uas, uac }) {
  uas.on('destroy', () => uac.destroy())
  uac.on('destroy', () => uas.destroy())
}

srf.on('error', (error) => console.error(error.message))
srf.on('connect', (error) => console.log(error ? error.message : 'ready'))
void srf.connect({ host, port: Number(port), secret })
