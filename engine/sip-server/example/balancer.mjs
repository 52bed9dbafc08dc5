import Srf from 'drachtio-srf'

const nodes = ['sip:10.0.0.11:5060', 'sip:10.0.0.12:5060']
const callers = ['203.0.113.7']
const alive = new Set(nodes)
let turn = 0

const srf = new Srf()
void srf.connect({ host: '127.0.0.1', port: 9022, secret: 'cymru' })
srf.on('connect', (error) => console.log(error ?? 'connected'))
srf.on('error', (error) => console.log('not connected:', error.message))

setInterval(() => nodes.forEach((node) => void ask(node).catch(() => undefined)), 1_000)

async function ask(node) {
  let isLate = false
  const silent = setTimeout(() => {
    isLate = true
    alive.delete(node)
  }, 900)
  // With a callback: a promise is resolved after an answer that comes at once.
  void srf.request(node, { method: 'OPTIONS' }, (error, request) => {
    request?.on('response', ({ status }) => {
      // The 408 for a node that was silent comes half a minute later, when it may be back.
      if (isLate) return
      clearTimeout(silent)
      if (status < 300) alive.add(node)
      else alive.delete(node)
    })
  })
}

srf.options((request, response) => response.send(200))

srf.invite((request, response) => {
  if (!callers.includes(request.source_address)) return response.send(403)
  const up = nodes.filter((node) => alive.has(node))
  if (up.length === 0) return response.send(503)
  const [user = ''] = /(?<=^sips?:)[^@]*@/.exec(request.uri) ?? []
  const node = up[turn++ % up.length].replace('sip:', `sip:${user}`)
  srf
    .proxyRequest(request, node, { recordRoute: true, provisionalTimeout: '2s' })
    .catch((error) => console.log(error))
})
