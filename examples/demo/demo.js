// npm run demo                        a small shop under load, until Ctrl-C: shop/shop.js
// npm run demo -- --once              one round of what Millrace promises, in the terminal: rounds.js; exit 0 when nothing was lost
// npm run demo -- --big --store postgres://localhost/demo
await import(process.argv.includes('--once') ? './rounds.js' : './shop/shop.js')
