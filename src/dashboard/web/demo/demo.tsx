import '../tokens.css'
import '../theme.css'
import { mount } from '../mount.js'
import { startRouter } from '../router.js'
import { demoApp } from './demo-app.js'

mount(demoApp(startRouter(window)), undefined)
