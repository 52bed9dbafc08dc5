/**
 * The page of a phone in a browser: JsSIP, a microphone that is a tone, and ears that know how loud
 * a tone is. `browser-phone.ts` bundles it and calls what `globalThis.phone` has.
 */
import { UA, WebSocketInterface } from 'jssip'

/** A tone as it was made: processing for speech would take it for noise. */
const audio = { echoCancellation: false, noiseSuppression: false, autoGainControl: false }
const constraints = { audio, video: false }

let ua
let session
const arrived = []
let analyser
let element
const sounds = new AudioContext()

globalThis.phone = {
  async register({ server, user, password, domain }) {
    const sockets = [new WebSocketInterface(server)]
    const uri = `sip:${user}@${domain}`
    ua = new UA({ sockets, uri, password, register: true, session_timers: false })
    ua.on('newRTCSession', (event) => {
      if (event.originator === 'local') return
      arrived.push(event.session)
    })
    ua.start()
    await happens(ua, 'registered', 'registrationFailed')
  },

  async call(target) {
    session = ua.call(target, { mediaConstraints: constraints })
    listen()
    await happens(session, 'confirmed', 'failed')
  },

  async answer() {
    while (arrived.length === 0) await new Promise((resolve) => setTimeout(resolve, 20))
    session = arrived.shift()
    // An INVITE without an offer, as in click-to-call: otherwise JsSIP asks for no microphone, and
    // offers nothing.
    const rtcOfferConstraints = { offerToReceiveAudio: true }
    session.answer({ mediaConstraints: constraints, rtcOfferConstraints })
    listen()
    await happens(session, 'confirmed', 'failed')
  },

  /** Resolves when the other side has answered the re-INVITE. */
  hold: () => new Promise((resolve) => session.hold({}, resolve)),
  resume: () => new Promise((resolve) => session.unhold({}, resolve)),

  sendDtmf(tones, transportType) {
    session.sendDTMF(tones, { transportType, duration: 100, interToneGap: 100 })
  },

  hangUp: () => session.terminate(),
  isOver: () => session.isEnded(),

  /** The level of each tone, in dB below the loudest possible. */
  levels(tonesHz) {
    if (analyser === undefined) return tonesHz.map(() => -200)
    const bins = new Float32Array(analyser.frequencyBinCount)
    analyser.getFloatFrequencyData(bins)
    const width = sounds.sampleRate / analyser.fftSize
    return tonesHz.map((hz) => {
      const at = Math.round(hz / width)
      return Math.max(-200, ...bins.subarray(at - 2, at + 3))
    })
  },

  async statistics() {
    const reports = [...(await session.connection.getStats()).values()]
    const of = (type) => reports.find((report) => report.type === type) ?? {}
    const { packetsReceived = 0, packetsLost = 0, codecId } = of('inbound-rtp')
    const { packetsSent = 0 } = of('outbound-rtp')
    const { dtlsState } = of('transport')
    const { mimeType } = reports.find(({ id }) => id === codecId) ?? {}
    return { packetsReceived, packetsLost, packetsSent, dtlsState, codec: mimeType }
  },
}

function happens(emitter, good, bad) {
  return new Promise((resolve, reject) => {
    emitter.on(good, resolve)
    emitter.on(bad, ({ cause, response }) =>
      reject(new Error(`${bad}: ${cause ?? ''} ${response?.status_code ?? ''}`)),
    )
  })
}

/** All streams that come, as a loudspeaker plays them. */
function listen() {
  analyser = new AnalyserNode(sounds, { fftSize: 8192, smoothingTimeConstant: 0.3 })
  const attach = (connection) =>
    connection.addEventListener('track', ({ track }) => {
      const stream = new MediaStream([track])
      // Without an element that plays it nothing reaches the analyser.
      element = new Audio()
      element.srcObject = stream
      element.muted = true
      void element.play()
      sounds.createMediaStreamSource(stream).connect(analyser)
    })
  if (session.connection) attach(session.connection)
  else session.on('peerconnection', ({ peerconnection }) => attach(peerconnection))
}
