import { openBrowser } from './test/support/console-browser.ts'
import { readdirSync, readFileSync, mkdirSync } from 'node:fs'
const [,, dir='', out='', cols='2', w='784', h='520', per='6', ...only] = process.argv
mkdirSync(out, { recursive: true })
const b = await openBrowser()
const p = await b.newPage({ viewport: { width: Number(cols) * Number(w), height: 500 } })
let names = only.length ? only : readdirSync(dir).filter((f) => f.endsWith('.png')).map((f) => f.slice(0, -4))
for (let i = 0, n = 0; i < names.length; i += Number(per), n++) {
  const html = names.slice(i, i + Number(per)).map((f) => `<div style="width:${w}px;height:${h}px;overflow:hidden;box-sizing:border-box;border:1px solid red;position:relative"><img style="width:100%;display:block" src="data:image/png;base64,${readFileSync(`${dir}/${f}.png`).toString('base64')}"><b style="position:absolute;right:0;bottom:0;background:yellow;color:#000;font:12px sans-serif">${f}</b></div>`).join('')
  await p.setContent(`<body style="margin:0;display:flex;flex-wrap:wrap;background:#888">${html}</body>`)
  await p.waitForTimeout(200)
  await p.screenshot({ path: `${out}/s${String(n).padStart(2, '0')}.png`, fullPage: true })
}
await b.close()
